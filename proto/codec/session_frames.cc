#include "proto/codec/session_frames.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "proto/codec/payload_message.h"

namespace opserve::codec {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

// Of SessionMessage.frames: field 1, which has a length.
constexpr uint8_t kFramesTag = (1 << 3) | 2;
constexpr size_t kMostVarintBytes = 10;
// A reference to a slice costs about as much as the copy of so many bytes. At least those of a
// message that is made in one piece (IsMerged): small results do not stay in their buffers until a
// slow reader has taken them.
constexpr size_t kMostCopiedBytes = 8192;

// Of those that are copied.
size_t CopiedBytes(absl::Span<const grpc::Slice> slices) {
  size_t bytes = 0;
  for (const grpc::Slice& slice : slices) {
    if (slice.size() <= kMostCopiedBytes) bytes += slice.size();
  }
  return bytes;
}

// Microseconds that absl::Duration can hold for certain.
constexpr uint64_t kMostMicroseconds = uint64_t{1} << 62;

template <typename Number>
Number Load(const char* bytes) {
  Number number;
  std::memcpy(&number, bytes, sizeof(number));
  return number;
}

template <typename Number>
void Store(Number number, char* bytes) {
  std::memcpy(bytes, &number, sizeof(number));
}

absl::Status Broken(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("the session's protocol is broken: ", why));
}

// Takes the first `size` bytes off, which are there; in place, since a slice that moves is copied.
void TakeFirst(Slices* slices, char* to, size_t size) {
  auto slice = slices->begin();
  for (; slice != slices->end() && slice->size() <= size; ++slice) {
    std::memcpy(to, slice->begin(), slice->size());
    to += slice->size();
    size -= slice->size();
  }
  if (size > 0) {
    std::memcpy(to, slice->begin(), size);
    *slice = slice->sub(size, slice->size());
  }
  slices->erase(slices->begin(), slice);
}

bool IsKind(uint8_t kind) {
  return kind >= static_cast<uint8_t>(FrameKind::kHello) &&
         kind <= static_cast<uint8_t>(FrameKind::kGoingAway);
}

}  // namespace

absl::StatusOr<FrameReader> FrameReader::Read(const grpc::ByteBuffer& message) {
  absl::StatusOr<Slices> slices = SlicesOf(message);
  if (!slices.ok()) return slices.status();
  absl::StatusOr<FrameReader> reader = FrameReader(*std::move(slices));
  if (reader->bytes_left_ == 0) return reader;  // no frames
  uint8_t byte = 0;
  const auto next = [&reader, &byte] {
    if (reader->bytes_left_ == 0) return false;
    reader->Copy(reinterpret_cast<char*>(&byte), 1);
    return true;
  };
  next();
  if (byte != kFramesTag) return Broken("a malformed message, not a SessionMessage");
  uint64_t size = 0;
  for (size_t i = 0; i < kMostVarintBytes; ++i) {
    if (!next()) break;
    if (i + 1 == kMostVarintBytes && byte > 1) break;  // more than 64 bits
    size |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if ((byte & 0x80) != 0) continue;
    if (size != reader->bytes_left_) break;
    return reader;
  }
  return Broken("a malformed message, of another length than its field `frames` says");
}

absl::StatusOr<std::optional<Frame>> FrameReader::Next() {
  if (bytes_left_ == 0) return std::optional<Frame>();
  std::array<char, kFrameHeaderBytes> header;
  if (bytes_left_ < header.size()) {
    return Broken(absl::StrCat("a frame's header is cut off after ", bytes_left_, " bytes"));
  }
  Copy(header.data(), header.size());
  const auto size = Load<uint32_t>(header.data());
  const auto kind = Load<uint8_t>(header.data() + 4);
  if (!IsKind(kind)) return Broken(absl::StrCat("a frame of the unknown kind ", kind));
  if (Load<uint8_t>(header.data() + 5) != 0 || Load<uint16_t>(header.data() + 6) != 0) {
    return Broken("the flags of a frame and the two bytes behind them must be 0");
  }
  if (size > bytes_left_) {
    return Broken(absl::StrCat("a frame's body of ", size, " bytes is longer than the rest of its ",
                               "message, ", bytes_left_));
  }
  // In the place where it is returned, since a slice that moves is copied.
  absl::StatusOr<std::optional<Frame>> next(absl::in_place, std::in_place);
  Frame& frame = **next;
  frame.kind = static_cast<FrameKind>(kind);
  frame.number = Load<uint64_t>(header.data() + 8);
  Take(size, &frame.body);
  return next;
}

template <typename Visit>
void FrameReader::ForEachPiece(size_t size, Visit visit) {
  bytes_left_ -= size;
  while (size > 0) {
    const grpc::Slice& slice = slices_[slice_];
    const size_t piece = std::min(size, slice.size() - offset_);
    if (piece > 0) visit(slice, offset_, offset_ + piece);
    size -= piece;
    offset_ += piece;
    if (offset_ < slice.size()) continue;
    ++slice_;
    offset_ = 0;
  }
}

void FrameReader::Copy(char* to, size_t size) {
  ForEachPiece(size, [&to](const grpc::Slice& slice, size_t begin, size_t end) {
    std::memcpy(to, slice.begin() + begin, end - begin);
    to += end - begin;
  });
}

void FrameReader::Take(size_t size, Slices* to) {
  ForEachPiece(size, [to](const grpc::Slice& slice, size_t begin, size_t end) {
    to->push_back(slice.sub(begin, end));
  });
}

absl::StatusOr<RequestStart> ReadRequestStart(Slices* body) {
  const size_t body_bytes = NumBytes(*body);
  std::array<char, kRequestStartBytes> numbers;
  if (body_bytes < numbers.size()) {
    return Broken(absl::StrCat("the body of a request has ", body_bytes, " bytes, at least ",
                               numbers.size(), " expected"));
  }
  TakeFirst(body, numbers.data(), numbers.size());
  const auto microseconds = Load<uint64_t>(numbers.data());
  const auto trace_bytes = Load<uint32_t>(numbers.data() + 8);
  const size_t bytes_left = body_bytes - numbers.size();
  if (trace_bytes > kMaxTraceParentBytes || trace_bytes > bytes_left) {
    return Broken(absl::StrCat("a traceparent of ", trace_bytes, " bytes, at most ",
                               kMaxTraceParentBytes, " allowed, ", bytes_left, " left"));
  }
  RequestStart start;
  if (microseconds > 0 && microseconds < kMostMicroseconds) {
    start.timeout = absl::Microseconds(static_cast<int64_t>(microseconds));
  }
  start.traceparent.resize(trace_bytes);
  TakeFirst(body, start.traceparent.data(), trace_bytes);
  return start;
}

std::string WriteRequestStart(const RequestStart& start) {
  std::string bytes(kRequestStartBytes, '\0');
  const int64_t microseconds = start.timeout == absl::InfiniteDuration()
                                   ? 0
                                   : std::max<int64_t>(absl::ToInt64Microseconds(start.timeout), 1);
  Store(static_cast<uint64_t>(microseconds), bytes.data());
  Store(static_cast<uint32_t>(start.traceparent.size()), bytes.data() + 8);
  bytes += start.traceparent;
  return bytes;
}

void FrameWriter::AddHeader(FrameKind kind, uint64_t number, size_t body_bytes,
                            size_t copied_bytes) {
  bytes_ += kFrameHeaderBytes + body_bytes;
  // Grows in large steps up to a batch, so that a message's first frames are moved few times.
  // With room for the field in front of them, too.
  const size_t needed = copied_.size() + kFrameHeaderBytes + copied_bytes + 1 + kMostVarintBytes;
  if (copied_.capacity() < needed) {
    const bool has_frames = !copied_.empty();
    copied_.reserve(std::max(needed, has_frames ? std::min(4 * needed, kBatchBytes) : 0));
  }
  std::array<char, kFrameHeaderBytes> header = {};
  Store(static_cast<uint32_t>(body_bytes), header.data());
  Store(static_cast<uint8_t>(kind), header.data() + 4);
  Store(number, header.data() + 8);
  copied_.append(header.data(), header.size());
}

void FrameWriter::Add(FrameKind kind, uint64_t number, absl::string_view start,
                      absl::Span<const grpc::Slice> rest) {
  AddHeader(kind, number, start.size() + NumBytes(rest), start.size() + CopiedBytes(rest));
  copied_.append(start.data(), start.size());
  for (const grpc::Slice& slice : rest) AddSlice(slice);
}

void FrameWriter::AddPayloadMessage(FrameKind kind, uint64_t number, absl::string_view header,
                                    absl::Span<const grpc::Slice> payloads) {
  const size_t body_bytes = PayloadMessageBytes(header.size(), payloads);
  AddHeader(kind, number, body_bytes, body_bytes - NumBytes(payloads) + CopiedBytes(payloads));
  copied_.append(header.data(), header.size());
  for (const grpc::Slice& payload : payloads) {
    const PayloadPrefix prefix(payload.size());
    copied_.append(prefix.bytes().data(), prefix.bytes().size());
    AddSlice(payload);
  }
}

void FrameWriter::AddSlice(const grpc::Slice& slice) {
  if (slice.size() <= kMostCopiedBytes) {
    copied_.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  } else {
    EndCopied();
    slices_.push_back(slice);
  }
}

void FrameWriter::EndCopied() {
  if (copied_.empty()) return;
  auto* const bytes = new std::string(std::move(copied_));
  slices_.emplace_back(
      bytes->data(), bytes->size(), [](void* owned) { delete static_cast<std::string*>(owned); },
      bytes);
  copied_.clear();
}

grpc::ByteBuffer FrameWriter::Finish() {
  std::array<uint8_t, 1 + kMostVarintBytes> field;
  field[0] = kFramesTag;
  const uint8_t* const end =
      google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(bytes_, field.data() + 1);
  const size_t field_bytes = end - field.data();
  if (slices_.empty()) {
    // All in one piece: to move the bytes costs less than a slice of their own.
    copied_.insert(0, reinterpret_cast<const char*>(field.data()), field_bytes);
  } else {
    slices_.insert(slices_.begin(), grpc::Slice(field.data(), field_bytes));
  }
  EndCopied();
  grpc::ByteBuffer message(slices_.data(), slices_.size());
  slices_.clear();
  bytes_ = 0;
  return message;
}

}  // namespace opserve::codec
