// absl::Status to gRPC, with everything a client can use: code, message, ErrorDetail and trailers.
#pragma once

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"
#include "opserve/v1/error.pb.h"

namespace opserve::server {

// The gRPC status for `status`. Adds the trailers `opserve-reason`, `grpc-retry-pushback-ms`,
// `opserve-limit-bytes` and `opserve-device-error` to `context` where the status has them. Texts
// that a client sent back to us inside an error are cut to a length that fits into trailers.
grpc::Status ToGrpcStatus(const absl::Status& status, grpc::ServerContext* context);

// The same for a status that is not OK and is sent inside a message.
v1::StatusDetails ToStatusDetails(const absl::Status& status);

}  // namespace opserve::server
