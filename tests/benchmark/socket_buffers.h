// Buffers of Unix sockets. What a packaged system gives them, 208 KiB, makes large messages stop
// many times on their way.
#pragma once

#include <sys/socket.h>

namespace opserve::benchmark {

inline void EnlargeSendBuffer(int socket) {
  const int bytes = 4 << 20;
  setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

}  // namespace opserve::benchmark
