// Unix sockets as a daemon wants them.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/access/file_descriptor.h"

namespace opserve::server {

// A socket of `type` (SOCK_STREAM, SOCK_SEQPACKET) that listens on `path`, and accepts connections
// only after it has `mode`. Creates the directory (mode 0700) if it is missing, and removes a
// socket that a daemon which died left behind.
//
// kUnavailable: another process answers on the socket.
// kFailedPrecondition: `path` is something else than a socket, its directory cannot be made or
// belongs to another user, or the system refuses.
absl::StatusOr<FileDescriptor> ListenOnPath(const std::string& path, unsigned mode, int type);

}  // namespace opserve::server
