#include "server/rpc/unix_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace opserve::server {
namespace {

namespace fs = std::filesystem;

// Whether a server accepts connections on the socket at `path`.
bool SomebodyAnswers(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  const absl::Cleanup close_fd = [fd] { close(fd); };
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int result = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  // A full backlog is a living server's.
  return result == 0 || errno == EAGAIN || errno == EINPROGRESS;
}

absl::Status CreateDirectory(const fs::path& directory) {
  std::error_code error;
  if (directory.empty() || fs::is_directory(directory, error)) return absl::OkStatus();
  if (mkdir(directory.c_str(), 0700) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "cannot create the socket's directory ", directory.string(), ": ", std::strerror(errno)));
}

}  // namespace

absl::Status PrepareSocketPath(const std::string& path) {
  if (absl::Status status = CreateDirectory(fs::path(path).parent_path()); !status.ok()) {
    return status;
  }
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " exists and is not a socket"));
  }
  if (SomebodyAnswers(path)) {
    return absl::UnavailableError(
        absl::StrCat("another daemon serves on ", path, "; choose another --listen"));
  }
  if (unlink(path.c_str()) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot replace the stale socket ", path, ": ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

absl::Status RestrictSocket(const std::string& path) {
  if (chmod(path.c_str(), 0660) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot set the mode of ", path, ": ", std::strerror(errno)));
}

}  // namespace opserve::server
