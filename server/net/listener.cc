#include "server/net/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/status/status_macros.h"
#include "server/net/file_descriptor.h"

namespace opserve::server {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

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
  // A mistyped path must not cost a file.
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

// A socket of `type` (SOCK_STREAM, SOCK_SEQPACKET) that listens on `path`, and accepts connections
// only after it has `mode`. Creates the directory (mode 0700) if it is missing, and removes a
// socket that a daemon which died left behind.
//
// kUnavailable: another process answers on the socket.
// kFailedPrecondition: `path` is something else than a socket, its directory cannot be made or
// belongs to another user, or the system refuses.
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

absl::Status CannotListen(const ListenAddress& address, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("cannot listen on ", address.ToString(), ": ", why));
}

absl::StatusOr<AddressList> Resolve(const ListenAddress& address) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  // The port is a number, for which no table of services is read.
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(), &hints, &found);
  if (error != 0) return CannotListen(address, gai_strerror(error));
  return AddressList(found, &freeaddrinfo);
}

void SetPort(int port, sockaddr* address) {
  if (address->sa_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(static_cast<uint16_t>(port));
  } else if (address->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = htons(static_cast<uint16_t>(port));
  }
}

int PortOf(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(address).sin_port
                                            : reinterpret_cast<sockaddr_in6&>(address).sin6_port);
}

// Without SO_REUSEPORT, with which another program of this user could take a part of the calls.
FileDescriptor BindOne(const addrinfo& info) {
  const int on = 1;
  FileDescriptor fd(socket(info.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return fd;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (info.ai_family == AF_INET6) {
    // "::" serves IPv4, too.
    const auto& address = *reinterpret_cast<const sockaddr_in6*>(info.ai_addr);
    const int only_v6 = IN6_IS_ADDR_UNSPECIFIED(&address.sin6_addr) ? 0 : 1;
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof(only_v6));
  }
  if (bind(fd.get(), info.ai_addr, info.ai_addrlen) != 0 || listen(fd.get(), SOMAXCONN) != 0) {
    return FileDescriptor();
  }
  return fd;
}

}  // namespace

absl::StatusOr<Listener> Listener::Bind(const ListenAddress& address, unsigned unix_mode,
                                        int unix_type) {
  Listener listener(address);
  if (address.is_unix) {
    OPSERVE_ASSIGN_OR_RETURN(FileDescriptor fd, ListenOnPath(address.path, unix_mode, unix_type));
    listener.sockets_.push_back(std::move(fd));
  } else {
    OPSERVE_RETURN_IF_ERROR(listener.BindHost());
  }
  return listener;
}

absl::Status Listener::BindHost() {
  OPSERVE_ASSIGN_OR_RETURN(const AddressList addresses, Resolve(address_));
  for (addrinfo* info = addresses.get(); info != nullptr; info = info->ai_next) {
    if (info->ai_family != AF_INET && info->ai_family != AF_INET6) continue;
    // With port 0 the system chooses one for the first address; the others get the same.
    SetPort(address_.port, info->ai_addr);
    FileDescriptor fd = BindOne(*info);
    if (fd.get() < 0) {
      // A name often has an IPv6 address where the machine has no IPv6.
      if (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT) continue;
      return CannotListen(address_, std::strerror(errno));
    }
    address_.port = PortOf(fd.get());
    sockets_.push_back(std::move(fd));
  }
  if (sockets_.empty()) return CannotListen(address_, "it is not an address of this machine");
  return absl::OkStatus();
}

Listener::~Listener() {
  if (address_.is_unix && !sockets_.empty()) unlink(address_.path.c_str());
}

}  // namespace opserve::server
