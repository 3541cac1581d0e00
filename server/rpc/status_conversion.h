// absl::Status to gRPC, with everything a client can use: code, message, ErrorDetail and trailers.
#pragma once

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"

namespace opserve::server {

// The gRPC status for `status`. Adds the trailers `opserve-reason`, `grpc-retry-pushback-ms` and
// `opserve-device-error` to `context` where the status has them. Texts that a client sent back to
// us inside an error are cut to a length that fits into trailers.
grpc::Status ToGrpcStatus(const absl::Status& status, grpc::ServerContext* context);

}  // namespace opserve::server
