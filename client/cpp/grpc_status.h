// Internal: the one translation from gRPC's statuses to this library's.
#pragma once

#include "absl/status/status.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/status.h"

namespace opserve {

// `context` is that of the finished call: its trailers may hold a pushback.
absl::Status FromGrpcStatus(const grpc::Status& status, const grpc::ClientContext& context);

}  // namespace opserve
