#include "server/access/unix_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "proto/status/status_macros.h"

namespace opserve::server {
namespace {

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

// Whether a server accepts connections on the socket at `path`.
bool SomebodyAnswers(const std::string& path, int type) {
  const FileDescriptor fd(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return false;
  const sockaddr_un address = AddressOf(path);
  const int result =
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  // A full backlog is a living server's, and so is a socket of another type.
  return result == 0 || errno == EAGAIN || errno == EINPROGRESS || errno == EPROTOTYPE;
}

// The directory's owner can replace the socket with one of their own, and would receive the
// clients' requests: only root and this user are trusted with that.
absl::Status CheckOwner(const std::string& directory) {
  struct stat info = {};
  if (stat(directory.c_str(), &info) == 0 && info.st_uid != 0 && info.st_uid != geteuid()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the socket's directory ", directory, " belongs to another user; choose another --listen"));
  }
  return absl::OkStatus();
}

absl::Status CreateDirectory(const std::string& directory) {
  if (directory.empty() || mkdir(directory.c_str(), 0700) == 0) return absl::OkStatus();
  if (errno == EEXIST) return CheckOwner(directory);
  return absl::FailedPreconditionError(
      absl::StrCat("cannot create the socket's directory ", directory, ": ", std::strerror(errno)));
}

absl::Status PrepareSocketPath(const std::string& path, int type) {
  if (absl::Status status = CreateDirectory(std::filesystem::path(path).parent_path());
      !status.ok()) {
    return status;
  }
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " exists and is not a socket"));
  }
  if (SomebodyAnswers(path, type)) {
    return absl::UnavailableError(
        absl::StrCat("another daemon serves on ", path, "; choose another --listen"));
  }
  if (unlink(path.c_str()) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot replace the stale socket ", path, ": ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FileDescriptor> ListenOnPath(const std::string& path, unsigned mode, int type) {
  OPSERVE_RETURN_IF_ERROR(PrepareSocketPath(path, type));
  FileDescriptor fd(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = AddressOf(path);
  // Connections are possible only after listen, by which time the mode is right.
  if (fd.get() < 0 ||
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      chmod(path.c_str(), mode) != 0 || listen(fd.get(), SOMAXCONN) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot listen on ", path, ": ", std::strerror(errno)));
  }
  return fd;
}

}  // namespace opserve::server
