#include "proto/session/session_frames.h"

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
         kind <= static_cast<uint8_t>(FrameKind::kPart);
}

}  // namespace

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

absl::Status FrameReader::Read(const grpc::ByteBuffer& message) {
  if (absl::Status status = TakeSlices(message, &slices_); !status.ok()) return status;
  bytes_left_ = NumBytes(slices_);
  if (bytes_left_ == 0) return absl::OkStatus();  // no frames
  uint8_t byte = 0;
  const auto next = [this, &byte] {
    if (bytes_left_ == 0) return false;
    ForEachPiece(1, [&byte](const grpc::Slice& slice, size_t begin, size_t) {
      byte = slice.begin()[begin];
    });
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
    if (size != bytes_left_) break;
    return absl::OkStatus();
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
  if (trace_bytes > 0) {
    start.traceparent.resize(trace_bytes);
    TakeFirst(body, start.traceparent.data(), trace_bytes);
  }
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

absl::StatusOr<PayloadSizes> ReadPayloadSizes(size_t max_payloads, Slices* body) {
  std::array<char, sizeof(uint32_t)> count_bytes;
  size_t bytes_left = NumBytes(*body);
  if (bytes_left < count_bytes.size()) return Broken("an announcement without sizes of payloads");
  TakeFirst(body, count_bytes.data(), count_bytes.size());
  bytes_left -= count_bytes.size();
  const auto count = Load<uint32_t>(count_bytes.data());
  if (count > max_payloads || count > bytes_left / sizeof(uint64_t)) {
    return Broken(absl::StrCat("an announcement of ", count, " payloads, at most ", max_payloads,
                               " allowed, with ", bytes_left, " bytes behind their number"));
  }
  PayloadSizes sizes(count);
  for (uint64_t& size : sizes) {
    std::array<char, sizeof(uint64_t)> bytes;
    TakeFirst(body, bytes.data(), bytes.size());
    size = Load<uint64_t>(bytes.data());
  }
  return sizes;
}

absl::StatusOr<uint64_t> ReadCredit(Slices body) {
  std::array<char, sizeof(uint64_t)> bytes;
  if (NumBytes(body) != bytes.size()) return Broken("a credit's body has not 8 bytes");
  TakeFirst(&body, bytes.data(), bytes.size());
  return Load<uint64_t>(bytes.data());
}

std::string WritePayloadSizes(absl::Span<const uint64_t> sizes) {
  std::string bytes(sizeof(uint32_t) + sizes.size() * sizeof(uint64_t), '\0');
  Store(static_cast<uint32_t>(sizes.size()), bytes.data());
  char* to = bytes.data() + sizeof(uint32_t);
  for (const uint64_t size : sizes) {
    Store(size, to);
    to += sizeof(size);
  }
  return bytes;
}

std::string WriteCredit(uint64_t bytes) {
  std::string body(sizeof(bytes), '\0');
  Store(bytes, body.data());
  return body;
}

void FrameWriter::Copied::Reserve(size_t bytes) {
  if (bytes <= capacity_) return;
  const grpc::Slice old = std::exchange(memory_, grpc::Slice(kFrontBytes + bytes));
  capacity_ = bytes;
  if (size_ > 0) std::memcpy(data(), old.begin() + kFrontBytes, size_);
}

void FrameWriter::Copied::Append(absl::string_view bytes) {
  // Seldom: what comes behind a slice that is referred to.
  if (bytes.size() > capacity_ - size_) Reserve(2 * (size_ + bytes.size()));
  std::memcpy(data() + size_, bytes.data(), bytes.size());
  size_ += bytes.size();
}

grpc::Slice FrameWriter::Copied::Take(absl::string_view front) {
  if (capacity_ == 0) Reserve(1);
  std::memcpy(data() - front.size(), front.data(), front.size());
  const grpc::Slice memory = std::exchange(memory_, grpc::Slice());
  capacity_ = 0;
  return memory.sub(kFrontBytes - front.size(), kFrontBytes + std::exchange(size_, 0));
}

void FrameWriter::AddHeader(FrameKind kind, uint64_t number, size_t body_bytes,
                            size_t copied_bytes) {
  bytes_ += kFrameHeaderBytes + body_bytes;
  // Grows in large steps up to a batch, so that a message's first frames are moved few times.
  const size_t needed = copied_.size() + kFrameHeaderBytes + copied_bytes;
  if (copied_.capacity() < needed) {
    const bool has_frames = !copied_.empty();
    copied_.Reserve(std::max(needed, has_frames ? std::min(4 * needed, kBatchBytes) : 0));
  }
  std::array<char, kFrameHeaderBytes> header = {};
  Store(static_cast<uint32_t>(body_bytes), header.data());
  Store(static_cast<uint8_t>(kind), header.data() + 4);
  Store(number, header.data() + 8);
  copied_.Append({header.data(), header.size()});
}

void FrameWriter::Add(FrameKind kind, uint64_t number, absl::string_view start,
                      absl::Span<const grpc::Slice> rest) {
  AddHeader(kind, number, start.size() + NumBytes(rest), start.size() + CopiedBytes(rest));
  copied_.Append(start);
  for (const grpc::Slice& slice : rest) AddSlice(slice);
}

void FrameWriter::AddPayloadMessage(FrameKind kind, uint64_t number, absl::string_view header,
                                    absl::Span<const grpc::Slice> payloads) {
  const size_t body_bytes = PayloadMessageBytes(header.size(), payloads);
  AddHeader(kind, number, body_bytes, body_bytes - NumBytes(payloads) + CopiedBytes(payloads));
  copied_.Append(header);
  for (const grpc::Slice& payload : payloads) {
    copied_.Append(PayloadPrefix(payload.size()).bytes());
    AddSlice(payload);
  }
}

void FrameWriter::AddSlice(const grpc::Slice& slice) {
  if (slice.size() <= kMostCopiedBytes) {
    copied_.Append(ViewOf(slice));
  } else {
    if (!copied_.empty()) slices_.push_back(copied_.Take(""));
    slices_.push_back(slice);
  }
}

grpc::ByteBuffer FrameWriter::Finish() {
  std::array<uint8_t, 1 + kMostVarintBytes> bytes;
  static_assert(bytes.size() <= Copied::kFrontBytes);
  bytes[0] = kFramesTag;
  const uint8_t* const end =
      google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(bytes_, bytes.data() + 1);
  const absl::string_view field(reinterpret_cast<const char*>(bytes.data()), end - bytes.data());
  bytes_ = 0;
  if (slices_.empty()) {
    const grpc::Slice whole = copied_.Take(field);
    return grpc::ByteBuffer(&whole, 1);
  }
  slices_.insert(slices_.begin(), grpc::Slice(field.data(), field.size()));
  if (!copied_.empty()) slices_.push_back(copied_.Take(""));
  grpc::ByteBuffer message(slices_.data(), slices_.size());
  slices_.clear();
  return message;
}

}  // namespace opserve::codec
