// Internal: the one translation from gRPC's and the protocol's statuses to this library's.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/status.h"
#include "opserve/v1/error.pb.h"

namespace opserve {

// `context` is that of the finished call: its trailers may hold a pushback.
// A message that was above the daemon's limit is TooLargeToSend, which is not worth a repetition.
absl::Status FromGrpcStatus(const grpc::Status& status, const grpc::ClientContext& context);

// kInvalidArgument with the reason too_large and the ways for large tensors: a message of `bytes`
// bytes, more than `limit`, of which `rule` says where it comes from ("a message can have at
// most").
absl::Status TooLargeToSend(uint64_t bytes, uint64_t limit, absl::string_view rule);

// An error that came inside a message. Never OK: a code that is none becomes kUnknown.
absl::Status FromStatusDetails(const v1::StatusDetails& details);

}  // namespace opserve
