// Messages that a synchronous service cannot parse.
#pragma once

#include "grpcpp/server_builder.h"

namespace opserve::server {

// Has the server's synchronous methods answer a malformed request with INVALID_ARGUMENT (reason
// "invalid") in place of gRPC's INTERNAL without a message. Before the server is built, once.
void RefuseMalformedRequests(grpc::ServerBuilder* builder);

}  // namespace opserve::server
