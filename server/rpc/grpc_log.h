// gRPC's own messages as lines of the daemon's log.
#pragma once

namespace opserve::server {

// From now on what gRPC has to say goes to the log: event "grpc", one line a second on average and
// ten at once, since strangers can make it say something for every connection. The next line says
// how many were left out. To be called before gRPC is used.
void LogGrpcMessages();

}  // namespace opserve::server
