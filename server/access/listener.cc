#include "server/access/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status/status_macros.h"
#include "server/access/unix_socket.h"

namespace opserve::server {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::Status CannotListen(const ListenAddress& address, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("cannot listen on ", address.ToString(), ": ", why));
}

absl::StatusOr<AddressList> Resolve(const ListenAddress& address) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
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
