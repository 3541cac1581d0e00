// gRPC's own messages as lines of the daemon's log.
#pragma once

namespace opserve::server {

// From now on gRPC's messages go to the log: event "grpc", one line a second on average and ten at
// once, since strangers can cause a message for every connection; of one place in gRPC's sources a
// line in ten seconds, and three at once. A place's next line says how many of it were left out.
// To be called before gRPC is used.
void LogGrpcMessages();

}  // namespace opserve::server
