// Internal: the one translation from gRPC's and the protocol's statuses to this library's.
#pragma once

#include "absl/status/status.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/status.h"
#include "opserve/v1/error.pb.h"

namespace opserve {

// `context` is that of the finished call: its trailers may hold a pushback.
absl::Status FromGrpcStatus(const grpc::Status& status, const grpc::ClientContext& context);

// An error that came inside a message. Never OK: a code that is none becomes kUnknown.
absl::Status FromStatusDetails(const v1::StatusDetails& details);

}  // namespace opserve
