// Where the time of one request goes.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace opserve::server {

// The stages of a request, in order. They do not overlap and together make up its total time.
enum class Stage { kRead, kValidate, kQueue, kH2d, kPrepare, kExecute, kD2h, kWrite };
inline constexpr int kStages = 8;
inline constexpr std::array<absl::string_view, kStages> kStageNames = {
    "read", "validate", "queue", "h2d", "prepare", "execute", "d2h", "write"};

// A stopwatch that is always in exactly one stage's time: the time between two calls is booked
// once, so the stages sum to the total. Used by one thread at a time.
class StageClock {
 public:
  StageClock() : last_(Clock::now()) {}

  // Books the time since the last call (or construction) as `stage`'s.
  void Book(Stage stage) {
    const Clock::time_point now = Clock::now();
    nanoseconds_[static_cast<int>(stage)] +=
        std::chrono::duration_cast<std::chrono::nanoseconds>(now - last_).count();
    last_ = now;
    last_stage_ = stage;
  }

  // The stage booked last, which is how far the request has come; before that the first.
  Stage last_stage() const { return last_stage_; }

  int64_t nanoseconds(Stage stage) const { return nanoseconds_[static_cast<int>(stage)]; }
  int64_t total_nanoseconds() const {
    int64_t total = 0;
    for (int64_t stage : nanoseconds_) total += stage;
    return total;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_;
  Stage last_stage_ = Stage::kRead;
  std::array<int64_t, kStages> nanoseconds_ = {};
};

}  // namespace opserve::server
