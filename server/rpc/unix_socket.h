// Unix sockets as a daemon wants them.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace opserve::server {

// Makes `path` ready to be bound: creates its directory (mode 0700) if it is missing, and removes a
// socket that a daemon which died left behind.
//
// kUnavailable: somebody answers on the socket.
// kFailedPrecondition: `path` is something else than a socket, or its directory cannot be made or
// belongs to another user.
absl::Status PrepareSocketPath(const std::string& path);

// Lets owner and group connect, nobody else.
absl::Status RestrictSocket(const std::string& path);

}  // namespace opserve::server
