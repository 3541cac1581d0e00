#include "server/device/trusted_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/status/status_macros.h"

namespace opserve::server {
namespace {

absl::Status SystemError(absl::string_view path) {
  return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
}

absl::Status CheckRights(absl::string_view path, int descriptor, mode_t type) {
  struct stat facts = {};
  if (fstat(descriptor, &facts) != 0) return SystemError(path);
  if ((facts.st_mode & S_IFMT) != type) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, ": is no ", type == S_IFDIR ? "directory" : "regular file"));
  }
  // Another owner could change it at any time.
  if (facts.st_uid != 0 && facts.st_uid != geteuid()) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, ": belongs to user ", facts.st_uid,
                     "; it must belong to root or to the daemon's user, ", geteuid()));
  }
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return absl::PermissionDeniedError(
        absl::StrFormat("%s: has mode %04o; only its owner may write to it: chmod go-w", path,
                        facts.st_mode & 07777));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TrustedFolder> TrustedFolder::Open(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return SystemError(path);
  // The folder owns the descriptor from here on, also if the check fails.
  TrustedFolder folder(path, descriptor);
  OPSERVE_RETURN_IF_ERROR(CheckRights(path, descriptor, S_IFDIR));
  return folder;
}

TrustedFolder::TrustedFolder(TrustedFolder&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

TrustedFolder::~TrustedFolder() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::string TrustedFolder::PathOf(absl::string_view name) const {
  return absl::StrCat(path_, absl::EndsWith(path_, "/") ? "" : "/", name);
}

absl::StatusOr<std::vector<std::string>> TrustedFolder::List(absl::string_view suffix,
                                                             size_t limit) const {
  // The stream takes its descriptor over, and reads from where that stands.
  const int own = openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const stream = own < 0 ? nullptr : fdopendir(own);
  if (stream == nullptr) {
    const absl::Status status = SystemError(path_);
    if (own >= 0) close(own);
    return status;
  }
  const auto close_it = absl::MakeCleanup([stream] { closedir(stream); });
  std::vector<std::string> names;
  while (const dirent* entry = readdir(stream)) {
    const absl::string_view name = entry->d_name;
    if (absl::StartsWith(name, ".") || !absl::EndsWith(name, suffix)) continue;
    // A path that was given by mistake may have any number of files.
    if (names.size() == limit) {
      return absl::ResourceExhaustedError(
          absl::StrCat(path_, ": has more than ", limit, " files *", suffix));
    }
    names.emplace_back(name);
  }
  // The file system lists them in an order of its own; the daemon reads them in the same order
  // everywhere.
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<int> TrustedFolder::OpenFile(const std::string& name) const {
  // O_NONBLOCK: a pipe in its place must not hold up the daemon.
  // The opened file is checked, and not its path.
  const int descriptor = openat(descriptor_, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return SystemError(PathOf(name));
  const absl::Status status = CheckRights(PathOf(name), descriptor, S_IFREG);
  if (status.ok()) return descriptor;
  close(descriptor);
  return status;
}

absl::StatusOr<std::string> TrustedFolder::ReadFile(const std::string& name,
                                                    size_t max_bytes) const {
  OPSERVE_ASSIGN_OR_RETURN(const int descriptor, OpenFile(name));
  const auto close_it = absl::MakeCleanup([descriptor] { close(descriptor); });
  // One byte more than allowed, which shows that there is more.
  std::string text(max_bytes + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = read(descriptor, text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(PathOf(name));
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  if (size > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(PathOf(name), ": has more than ", max_bytes, " bytes"));
  }
  text.resize(size);
  return text;
}

}  // namespace opserve::server
