// The daemon's own functions of the C library's and OpenSSL's names.
//
// gRPC is a shared library and calls recvmsg, sendmsg, close, getpeername and SSL_read through the
// dynamic linker, which takes the executable's functions first. socket_functions.cc defines them:
// they look the descriptor up in the socket table, and pass descriptors that are not in it (the
// metrics endpoint, files, clients in the same process) on untouched.
#pragma once

#include <sys/socket.h>

#include "absl/status/status.h"

namespace opserve::server {

// kInternal: gRPC would not call the daemon's functions, since the program was linked otherwise, so
// that nothing guards its connections.
absl::Status CheckSocketFunctions();

// The system's getpeername, also for descriptors in the table.
int RealPeerName(int fd, sockaddr* address, socklen_t* size);

}  // namespace opserve::server
