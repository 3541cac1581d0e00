// Looks at the frames that a client sends, and says when they are a flood.
//
// gRPC 1.51 bounds neither header blocks (HEADERS and CONTINUATION without end), nor streams that
// are reset as soon as they begin, nor frames that cost their sender nothing (PING, SETTINGS, empty
// DATA). The inspector reads the nine bytes before each frame's payload and skips the payload, so
// it costs some nanoseconds a frame. It keeps no frame and allocates nothing.
//
// Every bound is an account that fills with time, and with evidence that the client is served:
// calls that were identified pay for their streams, bytes that were sent pay for resets and for
// control frames. So a busy client may send many of them, a client that is refused may not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace opserve::server {

// Why a connection has to end. The values are dense.
enum class Flood : uint8_t {
  kNone,
  kHeaders,        // a header block of too many bytes or frames
  kStreams,        // streams of calls without an identified caller
  kResets,         // streams that were reset before they were answered
  kControlFrames,  // frames that carry nothing
  kData,           // bytes for calls without an identified caller
  kMalformed,      // not HTTP/2, or not TLS
};
inline constexpr size_t kNumFloods = 7;

// As a label: "headers".
absl::string_view FloodName(Flood flood);

// Bounds of one connection. Rates are per second.
struct Http2Limits {
  // gRPC refuses metadata of more than 8 KiB, with a status if the block is short enough to be
  // read.
  uint32_t max_header_block_bytes = 64 << 10;
  uint32_t max_continuations = 16;  // of one block

  // Before the first identified call. gRPC's clients begin all calls that await a new connection as
  // soon as it is there, without awaiting an answer to any: a hundred threads begin a hundred
  // streams, beside the health watch, and all of them may arrive before one is identified. A lower
  // bound would end such a client again each time it repeats its calls. There is hardly anything to
  // cancel yet.
  double stream_burst = 128;
  double reset_burst = 16;
  double control_burst = 2000;
  // After it.
  double identified_stream_burst = 1024;
  double identified_reset_burst = 1000;
  double identified_control_burst = 2000;
  double streams_per_second = 10;
  double identified_streams_per_second = 100;
  double resets_per_second = 50;
  double control_per_second = 200;
  // DATA before the first identified call, for which a whole message may be needed.
  double unidentified_bytes = 65 << 20;
  double unidentified_bytes_per_second = 64 << 10;
};

// For the connections of a peer that has just flooded, until a call is identified: enough for a
// client's first call beside its health watch, each of them repeated.
Http2Limits PacedLimits(Http2Limits limits);

// The daemon's work for the connection since it began.
struct ConnectionProgress {
  int64_t now_ns = 0;             // of any clock that does not go back
  bool is_identified = false;     // by one call at least
  uint32_t identified_calls = 0;  // may overflow 2^29 to 0
  uint64_t sent_bytes = 0;
};

// Used by one thread at a time.
class Http2Inspector {
 public:
  // `limits` outlives the inspector.
  Http2Inspector(const Http2Limits& limits, int64_t now_ns);

  // Fills the accounts by the progress until now; call it before each Read or a few of them.
  void Advance(const ConnectionProgress& progress);

  // The next bytes of the connection, cut anywhere. After another answer than kNone the rest of the
  // connection gets the same.
  Flood Read(absl::string_view bytes);

  // Whether the client speaks HTTP/2, as far as its first bytes say.
  bool has_preface() const;
  // Streams that the client began. (Trailers count as another one; gRPC's clients send none.)
  uint64_t streams() const { return num_streams_; }

 private:
  static constexpr size_t kFrameHeaderBytes = 9;

  // A budget that is filled and spent.
  struct Account {
    double left = 0;
    void Add(double amount, double most) { left = left + amount > most ? most : left + amount; }
    // Whether there was enough.
    bool Spend(double amount) {
      left -= amount;
      return left >= 0;
    }
  };

  Flood ReadPreface(absl::string_view* bytes);
  // Judges the frame from its complete header.
  Flood Judge();
  Flood JudgeData(uint32_t length, bool ends_stream);
  Flood JudgeHeaderBlock(bool is_first, uint32_t length, bool is_last);

  const Http2Limits* limits_;
  Account streams_;
  uint64_t num_streams_ = 0;
  Account resets_;
  Account control_;
  Account data_;
  ConnectionProgress last_;

  Flood verdict_ = Flood::kNone;
  size_t preface_read_ = 0;
  std::array<uint8_t, kFrameHeaderBytes> header_ = {};
  size_t header_read_ = 0;
  uint32_t payload_left_ = 0;
  // A header block that has begun and not ended.
  bool is_in_block_ = false;
  uint32_t block_stream_ = 0;
  uint64_t block_bytes_ = 0;
  uint32_t block_continuations_ = 0;
  uint32_t unended_streams_ = 0;  // for each of which an empty DATA frame may be the end
};

}  // namespace opserve::server
