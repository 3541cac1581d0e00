// Bounds on the lines of the log that clients can cause, so that none of them can fill a disk.
//
// A line costs one interval for each started KiB of its length, so the bound on lines is one on
// bytes, too: N lines a second on average are N KiB at most.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nlohmann/json_fwd.hpp"
#include "server/observability/log_severity.h"

namespace opserve::server {

// Events of which clients cause as many as they like.
enum class LimitedEvent {
  kCaptureFailed,
  kConnectionEnded,
  kDenied,
  kGrpc,
  kRequest,
  kShadowMismatch,
  kStreamAborted,
  kTransferFailed
};
inline constexpr const char* kLimitedEvents[] = {
    "capture_failed", "connection_ended", "denied",         "grpc",
    "request",        "shadow_mismatch",  "stream_aborted", "transfer_failed"};

// Lines of an event that were left out since the start. Thread-safe.
uint64_t LeftOutLogLines(LimitedEvent event);

// Admits one line per interval on average, and kBurst at once after a while without any. It
// remembers only when the next would be due if they came evenly (the generic cell rate algorithm),
// so it needs no lock. Thread-safe.
class LineLimiter {
 public:
  static constexpr int kBurst = 10;
  static constexpr absl::Duration kInterval = absl::Seconds(1);
  static constexpr size_t kBytes = 1024;  // of a line that costs one interval

  explicit LineLimiter(LimitedEvent event) : event_(event) {}
  LineLimiter(const LineLimiter&) = delete;
  LineLimiter& operator=(const LineLimiter&) = delete;

  // Whether one more line may be written at `now`, with Write. One that may not counts as left out,
  // unless lines of that severity are not written at all.
  bool Admit(LogSeverity severity, absl::Time now, absl::Duration interval = kInterval,
             int burst = kBurst);

  // Writes the line that was admitted. If others were left out since the last, its field left_out
  // says how many. `fields`: an object. Gives the line's bytes.
  size_t Write(LogSeverity severity, absl::string_view event, nlohmann::ordered_json fields,
               absl::Duration interval = kInterval);

  // A line that is written with another limiter's Write, of so many bytes, counts here as well.
  void Charge(size_t bytes, absl::Duration interval = kInterval);

  // Lines that were left out before they came here.
  void AddLeftOut(uint64_t lines);

 private:
  const LimitedEvent event_;
  std::atomic<int64_t> due_ns_ = 0;
  std::atomic<uint64_t> left_out_ = 0;  // since the last line
};

}  // namespace opserve::server
