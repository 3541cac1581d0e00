// Internal: room in the sockets of connections on this machine.
#pragma once

#include "grpcpp/support/channel_arguments.h"

namespace opserve {

// Gives connections over Unix sockets send buffers of 1 MiB, as the daemon's have: with the
// system's own, of 208 KiB, a large request stops many times on its way. No effect with a version
// of gRPC that is not known to take it.
void EnlargeUnixSendBuffers(grpc::ChannelArguments* arguments);

}  // namespace opserve
