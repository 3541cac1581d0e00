// Messages of small calls, from and to the bytes that travel.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/byte_buffer.h"
#include "proto/status/error.h"

namespace opserve::server {

// Reads *bytes, which are empty then. kInvalidArgument (reason "invalid"): they are no such
// message.
template <typename Message>
absl::Status ParseMessage(grpc::ByteBuffer* bytes, Message* message) {
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
