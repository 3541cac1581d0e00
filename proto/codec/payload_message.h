// Messages that keep tensor bytes out of protobuf.
//
// A payload message is an ordinary protobuf message with one top-level `repeated bytes` field, the
// payloads: kPayloadsField in the messages of opserve.v1. Everything else, the header, is small and
// goes through the stock parser; payloads are found and written by hand, so that their bytes are
// never copied on the way between gRPC's buffers and a tensor.
//
// Wire-compatible in both directions with peers that use generated classes only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "proto/codec/payloads.h"
#include "proto/codec/slices.h"

namespace opserve::codec {

// Where a message that is built has its payloads.
struct PayloadPlace {
  uint32_t field = kPayloadsField;
  // The message is sent as this field of another one, which has nothing else. 0: it is not.
  uint32_t wrapper_field = 0;
};

// Whether a message of a header and this many payloads with these bytes together is made in one
// piece, because references would cost more than copying.
inline constexpr size_t kMaxPrefixBytes = 16;  // tag and length of a payload or a wrapper
inline bool IsMerged(size_t header_bytes, size_t payloads, size_t payload_bytes) {
  constexpr size_t kLargest = 8 << 10;
  return payloads <= kLargest &&
         header_bytes + payloads * kMaxPrefixBytes + payload_bytes <= kLargest;
}

// Tag and length that precede the bytes of a payload.
class PayloadPrefix {
 public:
  explicit PayloadPrefix(size_t payload_bytes, uint32_t field = kPayloadsField);
  absl::string_view bytes() const { return {bytes_.data(), size_}; }

 private:
  std::array<char, kMaxPrefixBytes> bytes_;
  size_t size_;
};

// Bytes of a message of a serialised header and these payloads.
size_t PayloadMessageBytes(size_t header_bytes, absl::Span<const grpc::Slice> payloads,
                           uint32_t field = kPayloadsField);

// Serialises `header` (its payloads field must be empty) followed by `payloads`. These are not
// copied, unless the message is small (IsMerged): the buffer refers to their slices.
grpc::ByteBuffer BuildPayloadMessage(const google::protobuf::MessageLite& header,
                                     absl::Span<const grpc::Slice> payloads,
                                     const PayloadPlace& place = {});
// The same of a header that is serialised already.
grpc::ByteBuffer BuildPayloadMessage(absl::string_view header,
                                     absl::Span<const grpc::Slice> payloads);

}  // namespace opserve::codec
