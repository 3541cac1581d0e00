#include "proto/codec/payload_message.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"

namespace opserve::codec {
namespace {

using google::protobuf::internal::WireFormatLite;

uint32_t BytesTag(uint32_t field) {
  return WireFormatLite::MakeTag(static_cast<int>(field),
                                 WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

// Protobuf's own parser refuses deeper nesting; groups of an unknown field count towards it.
constexpr int kMaxGroupDepth = 100;
// It reads no more for a tag, of which it takes the lower 32 bits, or for a length.
constexpr size_t kMaxVarint32Bytes = 5;

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("malformed message: ", what));
}

// Reads forward over a list of slices. `header` receives the bytes of everything read through
// Take*; payload bytes are handed out in place.
class SliceCursor {
 public:
  SliceCursor(absl::Span<const grpc::Slice> slices, std::string* header)
      : slices_(slices), header_(header) {
    for (const grpc::Slice& slice : slices) remaining_ += slice.size();
    SkipEmptySlices();
  }

  bool AtEnd() const { return remaining_ == 0; }
  size_t remaining() const { return remaining_; }

  // Reads a varint of at most ten bytes and keeps its encoding in `raw`, so that the header repeats
  // it as it came.
  bool ReadVarint(uint64_t* value, std::string* raw) {
    *value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (AtEnd()) return false;
      const uint8_t byte = *Current();
      Advance(1);
      raw->push_back(static_cast<char>(byte));
      *value |= static_cast<uint64_t>(byte & 0x7f) << std::min(shift, 63);
      if ((byte & 0x80) == 0) return true;
    }
    return false;
  }

  bool CopyToHeader(uint64_t bytes) {
    return ForEachPiece(
        bytes, [this](absl::string_view piece) { header_->append(piece.data(), piece.size()); });
  }

  bool TakePayload(uint64_t bytes, Payload* payload) {
    payload->size = bytes;
    return ForEachPiece(bytes,
                        [payload](absl::string_view piece) { payload->pieces.push_back(piece); });
  }

 private:
  const uint8_t* Current() const { return slices_.front().begin() + offset_; }

  void Advance(size_t bytes) {
    offset_ += bytes;
    remaining_ -= bytes;
    SkipEmptySlices();
  }

  void SkipEmptySlices() {
    while (!slices_.empty() && offset_ == slices_.front().size()) {
      slices_.remove_prefix(1);
      offset_ = 0;
    }
  }

  template <typename Visit>
  bool ForEachPiece(uint64_t bytes, Visit visit) {
    if (bytes > remaining_) return false;
    while (bytes > 0) {
      const size_t piece = std::min<uint64_t>(bytes, slices_.front().size() - offset_);
      visit(absl::string_view(reinterpret_cast<const char*>(Current()), piece));
      bytes -= piece;
      Advance(piece);
    }
    return true;
  }

  absl::Span<const grpc::Slice> slices_;
  size_t offset_ = 0;  // into slices_.front()
  size_t remaining_ = 0;
  std::string* const header_;
};

// Copies the value of a field; its tag has been copied already. A group is copied tag by tag by the
// caller.
bool CopyValue(SliceCursor& cursor, WireFormatLite::WireType type, std::string* header) {
  uint64_t value = 0;
  switch (type) {
    case WireFormatLite::WIRETYPE_VARINT:
      return cursor.ReadVarint(&value, header);
    case WireFormatLite::WIRETYPE_FIXED64:
      return cursor.CopyToHeader(8);
    case WireFormatLite::WIRETYPE_FIXED32:
      return cursor.CopyToHeader(4);
    case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
      return cursor.ReadVarint(&value, header) && cursor.CopyToHeader(value);
    case WireFormatLite::WIRETYPE_START_GROUP:
    case WireFormatLite::WIRETYPE_END_GROUP:
      return true;
  }
  return false;
}

absl::Status SplitFields(SliceCursor& cursor, uint32_t payloads_field, size_t max_payloads,
                         std::string* header, size_t* header_fields,
                         std::vector<Payload>* payloads) {
  const uint32_t payload_tag = BytesTag(payloads_field);
  int group_depth = 0;
  while (!cursor.AtEnd()) {
    uint64_t whole_tag = 0;
    std::string raw_tag;
    if (!cursor.ReadVarint(&whole_tag, &raw_tag) || raw_tag.size() > kMaxVarint32Bytes) {
      return Malformed("bad field tag");
    }
    const auto tag = static_cast<uint32_t>(whole_tag);
    if (tag == payload_tag && group_depth == 0) {
      uint64_t size = 0;
      std::string raw_size;
      if (payloads->size() == max_payloads) {
        return absl::InvalidArgumentError(
            absl::StrCat("more than ", max_payloads, " payloads in one message"));
      }
      if (!cursor.ReadVarint(&size, &raw_size) || raw_size.size() > kMaxVarint32Bytes ||
          !cursor.TakePayload(size, &payloads->emplace_back())) {
        return Malformed(absl::StrCat("payload ", payloads->size() - 1, " of ", size,
                                      " bytes is longer than the message"));
      }
      continue;
    }
    if (group_depth == 0) ++*header_fields;
    header->append(raw_tag);
    const auto type = static_cast<WireFormatLite::WireType>(tag & 7);
    if (type == WireFormatLite::WIRETYPE_START_GROUP && ++group_depth > kMaxGroupDepth) {
      return Malformed("groups nested too deeply");
    }
    if (type == WireFormatLite::WIRETYPE_END_GROUP && --group_depth < 0) {
      return Malformed("end of a group that was not begun");
    }
    if (!CopyValue(cursor, type, header)) {
      return Malformed(absl::StrCat("field ", tag >> 3, " is cut off or of an unknown wire type"));
    }
  }
  return absl::OkStatus();
}

// Writes tag and length that precede the bytes of a field; returns where they end.
uint8_t* WritePrefix(uint32_t field, size_t size, uint8_t* to) {
  to = google::protobuf::io::CodedOutputStream::WriteVarint32ToArray(BytesTag(field), to);
  return google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(size, to);
}

size_t PrefixBytes(uint32_t field, size_t size) {
  std::array<uint8_t, kMaxPrefixBytes> prefix;
  return static_cast<size_t>(WritePrefix(field, size, prefix.data()) - prefix.data());
}

// How long the parts of a message are that is to be built.
struct MessageSizes {
  MessageSizes(const google::protobuf::MessageLite& message, absl::Span<const grpc::Slice> payloads,
               const PayloadPlace& place)
      : header(message.ByteSizeLong()) {
    inner = header;
    for (const grpc::Slice& payload : payloads) {
      payload_bytes += payload.size();
      inner += PrefixBytes(place.field, payload.size()) + payload.size();
    }
    if (place.wrapper_field != 0) wrapper = PrefixBytes(place.wrapper_field, inner);
  }
  size_t header;             // without the wrapper's tag and length
  size_t payload_bytes = 0;  // without the tag and length of each
  size_t inner = 0;          // the message itself
  size_t wrapper = 0;        // its tag and length, which precede the message
};

// Writes the part before the first payload; returns its end.
uint8_t* WriteHeader(const google::protobuf::MessageLite& header, const MessageSizes& sizes,
                     const PayloadPlace& place, uint8_t* to) {
  if (place.wrapper_field != 0) to = WritePrefix(place.wrapper_field, sizes.inner, to);
  return header.SerializeWithCachedSizesToArray(to);
}

// The slice was just made, and has no other owner yet.
uint8_t* Writable(const grpc::Slice& slice) { return const_cast<uint8_t*>(slice.begin()); }

grpc::ByteBuffer BuildMerged(const google::protobuf::MessageLite& header, const MessageSizes& sizes,
                             absl::Span<const grpc::Slice> payloads, const PayloadPlace& place) {
  grpc::Slice message(sizes.wrapper + sizes.inner);
  uint8_t* to = WriteHeader(header, sizes, place, Writable(message));
  for (const grpc::Slice& payload : payloads) {
    to = WritePrefix(place.field, payload.size(), to);
    to = std::copy(payload.begin(), payload.end(), to);
  }
  return grpc::ByteBuffer(&message, 1);
}

}  // namespace

absl::StatusOr<PayloadMessage> PayloadMessage::Split(const grpc::ByteBuffer& buffer,
                                                     size_t max_payloads, uint32_t payloads_field) {
  PayloadMessage message;
  if (!buffer.Valid() || !buffer.Dump(&message.slices_).ok()) {
    return absl::InternalError("gRPC gave no message");
  }
  // Most requests have no more.
  constexpr size_t kHeaderBytes = 256;
  message.payloads_.reserve(4);
  message.header_.reserve(std::min(buffer.Length(), kHeaderBytes));
  SliceCursor cursor(message.slices_, &message.header_);
  if (absl::Status status = SplitFields(cursor, payloads_field, max_payloads, &message.header_,
                                        &message.header_fields_, &message.payloads_);
      !status.ok()) {
    return status;
  }
  return message;
}

absl::Status PayloadMessage::ParseHeader(google::protobuf::MessageLite* header) const {
  if (!header->ParseFromString(header_)) {
    return Malformed(absl::StrCat("not a ", header->GetTypeName()));
  }
  return absl::OkStatus();
}

char* PayloadMessage::AddPayload(size_t size) {
  char* const bytes = added_.emplace_back(new char[size]).get();
  Payload& payload = payloads_.emplace_back();
  payload.size = size;
  if (size > 0) payload.pieces.push_back({bytes, size});
  return bytes;
}

grpc::ByteBuffer BuildPayloadMessage(const google::protobuf::MessageLite& header,
                                     absl::Span<const grpc::Slice> payloads,
                                     const PayloadPlace& place) {
  const MessageSizes sizes(header, payloads, place);
  if (IsMerged(sizes.header, payloads.size(), sizes.payload_bytes)) {
    return BuildMerged(header, sizes, payloads, place);
  }

  absl::InlinedVector<grpc::Slice, 8> slices;
  slices.emplace_back(sizes.wrapper + sizes.header);
  WriteHeader(header, sizes, place, Writable(slices.back()));
  for (const grpc::Slice& payload : payloads) {
    std::array<uint8_t, kMaxPrefixBytes> prefix;
    slices.emplace_back(prefix.data(),
                        WritePrefix(place.field, payload.size(), prefix.data()) - prefix.data());
    slices.push_back(payload);
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace opserve::codec
