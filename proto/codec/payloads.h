// Messages of requests, taken apart: the tensors' bytes stay where gRPC has them.
//
// Without gRPC's headers: what works with payloads need not know where they come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "google/protobuf/message_lite.h"

namespace grpc {
class ByteBuffer;
class Slice;
}  // namespace grpc

namespace opserve::codec {

using Slices = absl::InlinedVector<grpc::Slice, 1>;  // slices.h

inline constexpr uint32_t kPayloadsField = 15;
// Of a message: as many as a list may have tensors (catalog::kMaxListLength).
inline constexpr size_t kMaxPayloads = 4096;

// The bytes of one payload: pieces in order, each inside a slice of the message they came from.
struct Payload {
  size_t size = 0;  // bytes in all pieces
  absl::InlinedVector<absl::string_view, 2> pieces;
};

// A message taken apart. Owns references to gRPC's slices: payload pieces are valid as long as it
// lives, also after a move.
class PayloadMessage {
 public:
  PayloadMessage(PayloadMessage&& other) noexcept;
  PayloadMessage& operator=(PayloadMessage&& other) noexcept;
  ~PayloadMessage();

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

  absl::Span<const Payload> payloads() const;

  // All fields but the payloads, in their order. Valid as the payloads are.
  absl::string_view header() const;

  // Fields of the message that are not payloads, each as often as it is there. Parsed, even one of
  // two bytes can take a hundred times as much.
  size_t header_fields() const;

  // Adds a payload of `size` bytes, which are the message's own and for the caller to write: for
  // elements that came as part of the header.
  char* AddPayload(size_t size);

 private:
  struct Parts;

  PayloadMessage();

  std::unique_ptr<Parts> parts_;  // null after a move
};

}  // namespace opserve::codec
