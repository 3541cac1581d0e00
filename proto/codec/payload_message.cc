#include "proto/codec/payload_message.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"

namespace opserve::codec {

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

void HeaderBytes::Append(absl::string_view bytes) {
  if (copied_.empty() && bytes.data() == in_place_.data() + in_place_.size()) {
    in_place_ = absl::string_view(in_place_.data(), in_place_.size() + bytes.size());
  } else if (copied_.empty() && in_place_.empty()) {
    in_place_ = bytes;
  } else {
    AppendCopy(bytes);
  }
}

void HeaderBytes::AppendCopy(absl::string_view bytes) {
  if (copied_.empty()) copied_.assign(in_place_.data(), in_place_.size());
  copied_.append(bytes.data(), bytes.size());
}

namespace {

using google::protobuf::internal::WireFormatLite;

using Payloads = absl::InlinedVector<Payload, 4>;  // most requests have no more

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

constexpr size_t kMaxVarintBytes = 10;

// A varint and its encoding, so that a header repeats it as it came.
struct Varint {
  uint64_t value = 0;
  size_t size = 0;  // of `bytes`
  std::array<char, kMaxVarintBytes> bytes;
  const char* in_place = nullptr;  // null: a slice's end cuts it
};

// Reads forward over a list of slices. `header` receives the bytes of everything read through
// Copy*; payload bytes are handed out in place.
class SliceCursor {
 public:
  SliceCursor(absl::Span<const grpc::Slice> slices, HeaderBytes* header)
      : next_(slices), header_(header) {
    SkipEmptySlices();
  }

  // (Bytes are left in the slice unless none are left at all.)
  bool AtEnd() const { return at_ == end_; }

  // At most ten bytes.
  bool ReadVarint(Varint* varint) {
    varint->in_place = at_;
    uint64_t value = 0;
    for (size_t size = 0; size < kMaxVarintBytes;) {
      if (AtEnd()) return false;
      if (varint->in_place != nullptr && at_ != varint->in_place + size) varint->in_place = nullptr;
      const char byte = *at_;
      Advance(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << (7 * size);
      varint->bytes[size++] = byte;
      if ((byte & 0x80) != 0) continue;
      varint->value = value;
      varint->size = size;
      return true;
    }
    return false;
  }

  bool CopyVarint(Varint* varint) {
    if (!ReadVarint(varint)) return false;
    CopyToHeader(*varint);
    return true;
  }

  void CopyToHeader(const Varint& varint) {
    if (varint.in_place != nullptr) {
      header_->Append({varint.in_place, varint.size});
    } else {
      header_->AppendCopy({varint.bytes.data(), varint.size});
    }
  }

  bool CopyToHeader(uint64_t bytes) {
    return ForEachPiece(bytes, [this](absl::string_view piece) { header_->Append(piece); });
  }

  bool TakePayload(uint64_t bytes, Payload* payload) {
    payload->size = bytes;
    return ForEachPiece(bytes,
                        [payload](absl::string_view piece) { payload->pieces.push_back(piece); });
  }

 private:
  void Advance(size_t bytes) {
    at_ += bytes;
    if (at_ == end_) SkipEmptySlices();
  }

  void SkipEmptySlices() {
    while (at_ == end_ && !next_.empty()) {
      at_ = reinterpret_cast<const char*>(next_.front().begin());
      end_ = reinterpret_cast<const char*>(next_.front().end());
      next_.remove_prefix(1);
    }
  }

  // False, and some of the pieces may have been visited: there are not so many bytes.
  template <typename Visit>
  bool ForEachPiece(uint64_t bytes, Visit visit) {
    while (bytes > 0) {
      if (AtEnd()) return false;
      // gRPC cuts messages where it likes: a field may begin in one slice and end in another.
      const size_t piece = std::min<uint64_t>(bytes, static_cast<size_t>(end_ - at_));
      visit(absl::string_view(at_, piece));
      bytes -= piece;
      Advance(piece);
    }
    return true;
  }

  const char* at_ = nullptr;  // in a slice that ends at end_
  const char* end_ = nullptr;
  absl::Span<const grpc::Slice> next_;  // behind it
  HeaderBytes* const header_;
};

// Copies the value of a field; its tag has been copied already. A group is copied tag by tag by the
// caller.
bool CopyValue(SliceCursor& cursor, WireFormatLite::WireType type) {
  Varint varint;
  switch (type) {
    case WireFormatLite::WIRETYPE_VARINT:
      return cursor.CopyVarint(&varint);
    case WireFormatLite::WIRETYPE_FIXED64:
      return cursor.CopyToHeader(8);
    case WireFormatLite::WIRETYPE_FIXED32:
      return cursor.CopyToHeader(4);
    case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
      return cursor.CopyVarint(&varint) && cursor.CopyToHeader(varint.value);
    case WireFormatLite::WIRETYPE_START_GROUP:
    case WireFormatLite::WIRETYPE_END_GROUP:
      return true;
  }
  return false;
}

absl::Status SplitFields(SliceCursor& cursor, uint32_t payloads_field, size_t max_payloads,
                         size_t* header_fields, Payloads* payloads) {
  const uint32_t payload_tag = BytesTag(payloads_field);
  int group_depth = 0;
  while (!cursor.AtEnd()) {
    Varint whole_tag;
    if (!cursor.ReadVarint(&whole_tag) || whole_tag.size > kMaxVarint32Bytes) {
      return Malformed("bad field tag");
    }
    const auto tag = static_cast<uint32_t>(whole_tag.value);
    // Inside a group the number belongs to a field of the group.
    if (tag == payload_tag && group_depth == 0) {
      Varint size;
      // Before the payload is added, so that a message cannot make the list long.
      if (payloads->size() == max_payloads) {
        return absl::InvalidArgumentError(
            absl::StrCat("more than ", max_payloads, " payloads in one message"));
      }
      Payload& payload = payloads->emplace_back();
      if (!cursor.ReadVarint(&size) || size.size > kMaxVarint32Bytes ||
          !cursor.TakePayload(size.value, &payload)) {
        return Malformed(absl::StrCat("payload ", payloads->size() - 1, " of ", size.value,
                                      " bytes is longer than the message"));
      }
      continue;
    }
    if (group_depth == 0) ++*header_fields;
    cursor.CopyToHeader(whole_tag);
    const auto type = static_cast<WireFormatLite::WireType>(tag & 7);
    if (type == WireFormatLite::WIRETYPE_START_GROUP && ++group_depth > kMaxGroupDepth) {
      return Malformed("groups nested too deeply");
    }
    if (type == WireFormatLite::WIRETYPE_END_GROUP && --group_depth < 0) {
      return Malformed("end of a group that was not begun");
    }
    if (!CopyValue(cursor, type)) {
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
  return PayloadPrefix(size, field).bytes().size();
}

// Writes a header to `to`; returns its end.
using WriteHeader = absl::FunctionRef<uint8_t*(uint8_t*)>;

// Of a wrapper's tag and length, which precede the message.
size_t WrapperBytes(size_t message_bytes, const PayloadPlace& place) {
  return place.wrapper_field == 0 ? 0 : PrefixBytes(place.wrapper_field, message_bytes);
}

// Writes them to the beginning of `slice`; returns where the message begins. The slice was just
// made, has no other owner yet, and stays where it is: a small one holds its bytes itself.
uint8_t* WriteWrapper(size_t message_bytes, const PayloadPlace& place, const grpc::Slice& slice) {
  auto* const begin = const_cast<uint8_t*>(slice.begin());
  return place.wrapper_field == 0 ? begin : WritePrefix(place.wrapper_field, message_bytes, begin);
}

grpc::ByteBuffer Build(size_t header_bytes, WriteHeader write_header,
                       absl::Span<const grpc::Slice> payloads, const PayloadPlace& place) {
  const size_t bytes = PayloadMessageBytes(header_bytes, payloads, place.field);
  const size_t wrapper_bytes = WrapperBytes(bytes, place);
  if (IsMerged(header_bytes, payloads.size(), NumBytes(payloads))) {
    grpc::Slice message(wrapper_bytes + bytes);
    uint8_t* to = write_header(WriteWrapper(bytes, place, message));
    // For so few bytes, copying costs less than references.
    for (const grpc::Slice& payload : payloads) {
      to = WritePrefix(place.field, payload.size(), to);
      to = std::copy(payload.begin(), payload.end(), to);
    }
    return grpc::ByteBuffer(&message, 1);
  }
  absl::InlinedVector<grpc::Slice, 8> slices;
  slices.emplace_back(wrapper_bytes + header_bytes);
  write_header(WriteWrapper(bytes, place, slices.back()));
  for (const grpc::Slice& payload : payloads) {
    const PayloadPrefix prefix(payload.size(), place.field);
    slices.emplace_back(prefix.bytes().data(), prefix.bytes().size());
    // By reference: the bytes stay where the payload has them.
    slices.push_back(payload);
  }
  return ToByteBuffer(slices);
}

}  // namespace

PayloadPrefix::PayloadPrefix(size_t payload_bytes, uint32_t field) {
  uint8_t* const begin = reinterpret_cast<uint8_t*>(bytes_.data());
  size_ = static_cast<size_t>(WritePrefix(field, payload_bytes, begin) - begin);
}

size_t PayloadMessageBytes(size_t header_bytes, absl::Span<const grpc::Slice> payloads,
                           uint32_t field) {
  size_t bytes = header_bytes;
  for (const grpc::Slice& payload : payloads) {
    bytes += PrefixBytes(field, payload.size()) + payload.size();
  }
  return bytes;
}

// In one place of the heap, where they stay when the message moves.
struct PayloadMessage::Parts {
  Slices slices;
  std::vector<std::unique_ptr<char[]>> added;
  HeaderBytes header;
  size_t header_fields = 0;
  Payloads payloads;
};

PayloadMessage::PayloadMessage() : parts_(std::make_unique<Parts>()) {}
PayloadMessage::PayloadMessage(PayloadMessage&& other) noexcept = default;
PayloadMessage& PayloadMessage::operator=(PayloadMessage&& other) noexcept = default;
PayloadMessage::~PayloadMessage() = default;

absl::StatusOr<PayloadMessage> PayloadMessage::Split(const grpc::ByteBuffer& buffer,
                                                     size_t max_payloads, uint32_t payloads_field) {
  Slices slices;
  if (absl::Status status = TakeSlices(buffer, &slices); !status.ok()) return status;
  return Split(std::move(slices), max_payloads, payloads_field);
}

absl::StatusOr<PayloadMessage> PayloadMessage::Split(Slices&& slices, size_t max_payloads,
                                                     uint32_t payloads_field) {
  PayloadMessage message;
  // The message keeps the slices, into which its payloads point.
  Parts& parts = *message.parts_;
  parts.slices = std::move(slices);
  SliceCursor cursor(parts.slices, &parts.header);
  if (absl::Status status =
          SplitFields(cursor, payloads_field, max_payloads, &parts.header_fields, &parts.payloads);
      !status.ok()) {
    return status;
  }
  return message;
}

PayloadMessage PayloadMessage::OfPayload(Slices&& bytes) {
  PayloadMessage message;
  Parts& parts = *message.parts_;
  parts.slices = std::move(bytes);
  Payload& payload = parts.payloads.emplace_back();
  for (const grpc::Slice& slice : parts.slices) {
    payload.size += slice.size();
    payload.pieces.push_back(ViewOf(slice));
  }
  return message;
}

absl::Span<const Payload> PayloadMessage::payloads() const { return parts_->payloads; }

absl::string_view PayloadMessage::header() const { return parts_->header.bytes(); }

size_t PayloadMessage::header_fields() const { return parts_->header_fields; }

absl::Status PayloadMessage::ParseHeader(google::protobuf::MessageLite* header) const {
  const absl::string_view bytes = parts_->header.bytes();
  if (!header->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Malformed(absl::StrCat("not a ", header->GetTypeName()));
  }
  return absl::OkStatus();
}

char* PayloadMessage::AddPayload(size_t size) {
  // In memory of its own, which stays where it is when more payloads are added.
  char* const bytes = parts_->added.emplace_back(new char[size]).get();
  Payload& payload = parts_->payloads.emplace_back();
  payload.size = size;
  if (size > 0) payload.pieces.push_back({bytes, size});
  return bytes;
}

grpc::ByteBuffer BuildPayloadMessage(const google::protobuf::MessageLite& header,
                                     absl::Span<const grpc::Slice> payloads,
                                     const PayloadPlace& place) {
  const auto write = [&header](uint8_t* to) { return header.SerializeWithCachedSizesToArray(to); };
  // The size is computed first: the message stores those of its parts, by which `write` goes.
  return Build(header.ByteSizeLong(), write, payloads, place);
}

grpc::ByteBuffer BuildPayloadMessage(absl::string_view header,
                                     absl::Span<const grpc::Slice> payloads) {
  const auto write = [header](uint8_t* to) { return std::copy(header.begin(), header.end(), to); };
  return Build(header.size(), write, payloads, {});
}

}  // namespace opserve::codec
