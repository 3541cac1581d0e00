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
// A message above the daemon's limit gives TooLargeToSend, which no call repeats.
absl::Status FromGrpcStatus(const grpc::Status& status, const grpc::ClientContext& context);

// kInvalidArgument with the reason too_large and the ways for large tensors: a message has `bytes`
// bytes, more than `limit`. `rule` is the origin of the limit ("--max_message_bytes").
absl::Status TooLargeToSend(uint64_t bytes, uint64_t limit, absl::string_view rule);

// An error that came inside a message. Never OK: a code that is none becomes kUnknown.
absl::Status FromStatusDetails(const v1::StatusDetails& details);

}  // namespace opserve
