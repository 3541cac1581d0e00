// Connections to Unix sockets for peers that are no gRPC client.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "server/net/file_descriptor.h"

namespace opserve {

// Aborts the test program if nobody listens at `path`.
inline server::FileDescriptor ConnectToUnixSocket(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  server::FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    std::perror(path.c_str());
    std::abort();
  }
  return fd;
}

}  // namespace opserve
