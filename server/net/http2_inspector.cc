#include "server/net/http2_inspector.h"

#include <algorithm>
#include <cstring>

namespace opserve::server {
namespace {

constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// RFC 9113, 6.
constexpr uint8_t kData = 0;
constexpr uint8_t kHeaders = 1;
constexpr uint8_t kResetStream = 3;
constexpr uint8_t kSettings = 4;
constexpr uint8_t kContinuation = 9;
constexpr uint8_t kEndStream = 1;
constexpr uint8_t kEndHeaders = 4;
constexpr uint32_t kSettingBytes = 6;

// Shorter DATA frames cost gRPC more memory than they have bytes (a slice is 32 bytes); clients
// send one where a window ends, or an empty one to end a stream.
constexpr uint32_t kTinyDataBytes = 16;
// So many DATA bytes an unidentified client pays for a frame at least.
constexpr double kLeastDataCost = 1024;
// Blocks beyond this are always refused, so they cost more than one stream.
constexpr double kHeaderBytesOfOneStream = 16 << 10;
constexpr uint32_t kPayloadOfOneFrame = 1024;

// An answer is 60 bytes at least. A client resets its stream once at most and acknowledges its
// bytes with two WINDOW_UPDATE frames at most.
constexpr double kSentBytesForReset = 64;
constexpr double kSentBytesForControlFrame = 32;

// A client's first call and its health watch, and each of them repeated three times.
constexpr double kPacedStreams = 8;
constexpr double kPacedStreamsPerSecond = 1;
constexpr double kPacedResets = 4;
// A client sends its settings, acknowledges the daemon's, opens its window and asks for an echo,
// which are some six frames.
constexpr double kPacedControlFrames = 64;
constexpr uint32_t kCallsMask = (uint32_t{1} << 29) - 1;

uint32_t BigEndian(const uint8_t* bytes, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; ++i) value = value << 8 | bytes[i];
  return value;
}

}  // namespace

absl::string_view FloodName(Flood flood) {
  switch (flood) {
    case Flood::kNone:
      return "none";
    case Flood::kHeaders:
      return "headers";
    case Flood::kStreams:
      return "streams";
    case Flood::kResets:
      return "resets";
    case Flood::kControlFrames:
      return "control_frames";
    case Flood::kData:
      return "data";
    case Flood::kMalformed:
      return "malformed";
  }
  return "none";
}

Http2Limits PacedLimits(Http2Limits limits) {
  // The configured limits hold all the same, where they are the stricter ones.
  limits.stream_burst = std::min(limits.stream_burst, kPacedStreams);
  limits.streams_per_second = std::min(limits.streams_per_second, kPacedStreamsPerSecond);
  limits.reset_burst = std::min(limits.reset_burst, kPacedResets);
  limits.control_burst = std::min(limits.control_burst, kPacedControlFrames);
  return limits;
}

Http2Inspector::Http2Inspector(const Http2Limits& limits, int64_t now_ns)
    : limits_(&limits),
      streams_{limits.stream_burst},
      resets_{limits.reset_burst},
      control_{limits.control_burst},
      data_{limits.unidentified_bytes} {
  last_.now_ns = now_ns;
}

void Http2Inspector::Advance(const ConnectionProgress& progress) {
  const Http2Limits& limits = *limits_;
  const double seconds =
      static_cast<double>(std::max<int64_t>(progress.now_ns - last_.now_ns, 0)) * 1e-9;
  // The count wraps at 2^29; the difference does not.
  const double calls = (progress.identified_calls - last_.identified_calls) & kCallsMask;
  const auto sent = static_cast<double>(progress.sent_bytes - last_.sent_bytes);
  // A client that has shown its identity gets the larger burst at once.
  if (progress.is_identified && !last_.is_identified) {
    streams_.left += limits.identified_stream_burst - limits.stream_burst;
    resets_.left += limits.identified_reset_burst - limits.reset_burst;
    control_.left += limits.identified_control_burst - limits.control_burst;
  }
  const bool is_known = progress.is_identified;
  streams_.Add(is_known ? seconds * limits.identified_streams_per_second + calls
                        : seconds * limits.streams_per_second,
               is_known ? limits.identified_stream_burst : limits.stream_burst);
  resets_.Add(seconds * limits.resets_per_second + sent / kSentBytesForReset,
              is_known ? limits.identified_reset_burst : limits.reset_burst);
  control_.Add(seconds * limits.control_per_second + sent / kSentBytesForControlFrame,
               is_known ? limits.identified_control_burst : limits.control_burst);
  data_.Add(seconds * limits.unidentified_bytes_per_second, limits.unidentified_bytes);
  last_ = progress;
}

// Three states: within the preface, within the nine bytes before a frame, within its payload. The
// bytes may be cut at any place.
Flood Http2Inspector::Read(absl::string_view bytes) {
  while (verdict_ == Flood::kNone && !bytes.empty()) {
    if (preface_read_ < kPreface.size()) {
      verdict_ = ReadPreface(&bytes);
      continue;
    }
    if (payload_left_ > 0) {
      const size_t skipped = std::min<size_t>(payload_left_, bytes.size());
      payload_left_ -= static_cast<uint32_t>(skipped);
      bytes.remove_prefix(skipped);
      continue;
    }
    const size_t taken = std::min(kFrameHeaderBytes - header_read_, bytes.size());
    std::memcpy(header_.data() + header_read_, bytes.data(), taken);
    header_read_ += taken;
    bytes.remove_prefix(taken);
    if (header_read_ < kFrameHeaderBytes) break;
    header_read_ = 0;
    payload_left_ = BigEndian(header_.data(), 3);
    verdict_ = Judge();
  }
  return verdict_;
}

bool Http2Inspector::has_preface() const { return preface_read_ == kPreface.size(); }

Flood Http2Inspector::ReadPreface(absl::string_view* bytes) {
  const size_t count = std::min(kPreface.size() - preface_read_, bytes->size());
  if (bytes->substr(0, count) != kPreface.substr(preface_read_, count)) return Flood::kMalformed;
  preface_read_ += count;
  bytes->remove_prefix(count);
  return Flood::kNone;
}

Flood Http2Inspector::Judge() {
  const uint32_t length = payload_left_;
  const uint8_t type = header_[3];
  const uint8_t flags = header_[4];
  // The highest bit is reserved (RFC 9113, 4.1).
  const uint32_t stream = BigEndian(header_.data() + 5, 4) & 0x7fffffff;

  // Within a block nothing else may come; gRPC ends such a connection, too.
  if (is_in_block_ != (type == kContinuation)) return Flood::kMalformed;
  if (is_in_block_ && stream != block_stream_) return Flood::kMalformed;

  switch (type) {
    case kHeaders:
      block_stream_ = stream;
      if ((flags & kEndStream) == 0) ++unended_streams_;
      return JudgeHeaderBlock(/*is_first=*/true, length, (flags & kEndHeaders) != 0);
    case kContinuation:
      return JudgeHeaderBlock(/*is_first=*/false, length, (flags & kEndHeaders) != 0);
    case kData:
      return JudgeData(length, (flags & kEndStream) != 0);
    case kResetStream:
      return resets_.Spend(1) ? Flood::kNone : Flood::kResets;
    case kSettings:
      // Each setting is applied, and the frame is acknowledged.
      return control_.Spend(2 + length / kSettingBytes) ? Flood::kNone : Flood::kControlFrames;
    default:
      return control_.Spend(1 + length / kPayloadOfOneFrame) ? Flood::kNone : Flood::kControlFrames;
  }
}

Flood Http2Inspector::JudgeHeaderBlock(bool is_first, uint32_t length, bool is_last) {
  if (is_first) {
    block_bytes_ = 0;
    block_continuations_ = 0;
  } else if (++block_continuations_ > limits_->max_continuations) {
    return Flood::kHeaders;
  }
  block_bytes_ += length;
  if (block_bytes_ > limits_->max_header_block_bytes) return Flood::kHeaders;
  is_in_block_ = !is_last;
  if (is_in_block_) return Flood::kNone;
  ++num_streams_;
  const double cost = 1 + static_cast<double>(block_bytes_) / kHeaderBytesOfOneStream;
  // Fractions of a stream's price are not charged, as an identified call pays a whole one.
  return streams_.Spend(static_cast<double>(static_cast<uint64_t>(cost))) ? Flood::kNone
                                                                          : Flood::kStreams;
}

Flood Http2Inspector::JudgeData(uint32_t length, bool ends_stream) {
  const bool is_end_of_a_stream = ends_stream && unended_streams_ > 0;
  if (is_end_of_a_stream) --unended_streams_;
  if (length < kTinyDataBytes) {
    return is_end_of_a_stream || control_.Spend(1) ? Flood::kNone : Flood::kControlFrames;
  }
  // Only calls without an identity pay for their bytes.
  if (last_.is_identified) return Flood::kNone;
  const double cost = std::max(static_cast<double>(length), kLeastDataCost);
  return data_.Spend(cost) ? Flood::kNone : Flood::kData;
}

}  // namespace opserve::server
