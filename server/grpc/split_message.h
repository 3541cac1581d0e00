// Takes the messages of requests apart.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"
#include "proto/codec/payload_message.h"
#include "proto/codec/slices.h"

namespace opserve::server {

// Takes a message apart; its payloads are in that field.
// kInvalidArgument: malformed, more payloads or other fields than a request could have, or more
// than `max_header_bytes` beside the payloads (reason "too_large").
absl::StatusOr<codec::PayloadMessage> SplitMessage(codec::Slices&& message,
                                                   uint64_t max_header_bytes,
                                                   uint32_t payloads_field = codec::kPayloadsField);

// The same; `header` gets all but the payloads.
absl::StatusOr<codec::PayloadMessage> SplitMessage(const grpc::ByteBuffer& message,
                                                   uint64_t max_header_bytes,
                                                   google::protobuf::MessageLite* header,
                                                   uint32_t payloads_field = codec::kPayloadsField);

// Reads all but the payloads into `header`. kInvalidArgument: they are no such message.
absl::Status ReadHeader(const codec::PayloadMessage& message,
                        google::protobuf::MessageLite* header);

}  // namespace opserve::server
