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
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "proto/codec/slices.h"

namespace opserve::codec {

inline constexpr uint32_t kPayloadsField = 15;

// Where a message that is built has its payloads.
struct PayloadPlace {
  uint32_t field = kPayloadsField;
  // The message is sent as this field of another one, which has nothing else. 0: it is not.
  uint32_t wrapper_field = 0;
};

// The bytes of one payload: pieces in order, each inside a slice of the message they came from.
struct Payload {
  size_t size = 0;  // bytes in all pieces
  absl::InlinedVector<absl::string_view, 2> pieces;
};

// Bytes of a message that were put together: where they lie behind each other in a slice, as they
// mostly do, in place.
class HeaderBytes {
 public:
  void Append(absl::string_view bytes);  // which stay where they are
  void AppendCopy(absl::string_view bytes);
  absl::string_view bytes() const { return copied_.empty() ? in_place_ : copied_; }

 private:
  absl::string_view in_place_;
  std::string copied_;  // not empty: all of them
};

// A message taken apart. Owns references to gRPC's slices: payload pieces are valid as long as it
// lives, also after a move.
class PayloadMessage {
 public:
  // Takes `buffer` apart. Accepts the same framing as the stock parser of the full message: the
  // header is parsed by ParseHeader.
  //
  // kInvalidArgument: a truncated or malformed field; more than `max_payloads` payloads.
  // kInternal: gRPC could not give its slices.
  static absl::StatusOr<PayloadMessage> Split(const grpc::ByteBuffer& buffer, size_t max_payloads,
                                              uint32_t payloads_field = kPayloadsField);
  static absl::StatusOr<PayloadMessage> Split(Slices&& slices, size_t max_payloads,
                                              uint32_t payloads_field = kPayloadsField);

  // A message without a header whose only payload is `bytes`.
  static PayloadMessage OfPayload(Slices&& bytes);

  // Parses all fields but the payloads into `header` with protobuf's own parser.
  // kInvalidArgument: it refuses them.
  absl::Status ParseHeader(google::protobuf::MessageLite* header) const;

  absl::Span<const Payload> payloads() const { return payloads_; }

  // All fields but the payloads, in their order. Valid as the payloads are, until a move.
  absl::string_view header() const { return header_.bytes(); }

  // Fields of the message that are not payloads, each as often as it is there. Parsed, even one of
  // two bytes can take a hundred times as much.
  size_t header_fields() const { return header_fields_; }

  // Adds a payload of `size` bytes, which are the message's own and for the caller to write: for
  // elements that came as part of the header.
  char* AddPayload(size_t size);

 private:
  PayloadMessage() = default;

  std::vector<grpc::Slice> slices_;
  std::vector<std::unique_ptr<char[]>> added_;
  HeaderBytes header_;
  size_t header_fields_ = 0;
  std::vector<Payload> payloads_;
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
