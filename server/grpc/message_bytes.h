// Messages of small calls, from and to the bytes that travel.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/byte_buffer.h"
#include "proto/status/error.h"

namespace opserve::server {

// kInvalidArgument (reason "too_large"): the message has more than `limit` bytes.
inline absl::Status CheckMessageBytes(const grpc::ByteBuffer& bytes, uint64_t limit) {
  if (bytes.Length() <= limit) return absl::OkStatus();
  return WithLimit(
      limit, MakeError(Reason::kTooLarge,
                       absl::StrCat("the message has ", bytes.Length(), " bytes, at most ", limit,
                                    " allowed (--max_message_bytes); upload large inputs as "
                                    "resident tensors, or put them into shared memory")));
}

// The same of the bytes of a message that are not payloads, which take many times as much when they
// are read.
inline absl::Status CheckHeaderBytes(uint64_t bytes, uint64_t limit) {
  if (bytes <= limit) return absl::OkStatus();
  return WithLimit(
      limit, MakeError(Reason::kTooLarge, absl::StrCat("the message has ", bytes,
                                                       " bytes beside its payloads, at most ",
                                                       limit, " allowed (--max_header_bytes)")));
}

// Reads *bytes, which are empty then. kInvalidArgument: they are more than `limit` (reason
// "too_large"), or no such message (reason "invalid").
template <typename Message>
absl::Status ParseMessage(uint64_t limit, grpc::ByteBuffer* bytes, Message* message) {
  if (absl::Status status = CheckMessageBytes(*bytes, limit); !status.ok()) return status;
  if (grpc::SerializationTraits<Message>::Deserialize(bytes, message).ok()) {
    return absl::OkStatus();
  }
  return InvalidCall("", "",
                     absl::StrCat("malformed message: not a ", Message::descriptor()->name()),
                     /*aclnn_status=*/0);
}

template <typename Message>
grpc::ByteBuffer ToByteBuffer(const Message& message) {
  grpc::ByteBuffer bytes;
  bool own_buffer = false;
  // Fails for messages of 2 GiB only, which no answer of a small call is.
  grpc::SerializationTraits<Message>::Serialize(message, &bytes, &own_buffer);
  return bytes;
}

}  // namespace opserve::server
