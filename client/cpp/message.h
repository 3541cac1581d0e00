// Internal: requests and responses to and from gRPC's buffers.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/borrow.h"
#include "client/cpp/request.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"

namespace opserve {

struct EncodedRequest {
  grpc::ByteBuffer buffer;
  Borrow borrow;
};

// The message of an Execute call. Refers to the storages of the tensors, except small ones, which
// are copied. Tensors with the same storage share a payload.
//
// kInvalidArgument: more bytes than a gRPC message can have, or more destinations than results.
absl::StatusOr<EncodedRequest> EncodeRequest(const Request& request);

// The same as a message of a stream, where `id` names it and which has its own timeout.
absl::StatusOr<EncodedRequest> EncodeStreamRequest(const Request& request, uint64_t id);

// kInternal: not an answer that the protocol allows. kFailedPrecondition: a result is in a region
// of shared memory that is gone.
absl::StatusOr<Response> DecodeResponse(const grpc::ByteBuffer& buffer);

struct StreamAnswer {
  uint64_t id = 0;
  absl::StatusOr<Response> outcome;
};

// kInternal: not an answer that the protocol allows.
absl::StatusOr<StreamAnswer> DecodeStreamResponse(const grpc::ByteBuffer& buffer);

// An answer without payloads. kInternal: it is not a message of this type.
absl::Status DecodeMessage(const grpc::ByteBuffer& buffer, google::protobuf::MessageLite* message);

// kInternal, for an answer that the protocol does not allow.
absl::Status BadAnswer(absl::string_view why);

}  // namespace opserve
