// How busy something was lately that several may use at the same time.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>

#include "absl/time/time.h"

namespace opserve::server {

// The time in which at least one used it, since it was made. Begin and End are called under a lock
// of the owner's; Total takes none.
class BusyTime {
 public:
  // One more uses it from `now` on, and one less.
  void Begin(absl::Time now) {
    if (users_++ == 0) Add(-absl::ToUnixNanos(now));
  }
  void End(absl::Time now) {
    if (--users_ == 0) Add(absl::ToUnixNanos(now));
  }

  // Until `now`. Thread-safe.
  absl::Duration Total(absl::Time now) const {
    const int64_t sum = sum_ns_.load(std::memory_order_relaxed);
    return absl::Nanoseconds(sum < 0 ? sum + absl::ToUnixNanos(now) : sum);
  }

 private:
  void Add(int64_t nanoseconds) { sum_ns_.fetch_add(nanoseconds, std::memory_order_relaxed); }

  uint32_t users_ = 0;
  // Ends minus beginnings, in Unix time, of the times in which it was busy. While it is, a
  // beginning has no end yet, so that the sum is negative: one number tells both how long and
  // whether.
  std::atomic<int64_t> sum_ns_ = 0;
};

// The part of the last seconds in which something was busy. One thread samples, whenever it likes;
// scrapes change nothing.
class Utilization {
 public:
  static constexpr absl::Duration kWindow = absl::Seconds(15);

  // `busy`: in total until `now`. About once a second.
  void Sample(absl::Duration busy, absl::Time now);

  // From 0 to 1, of the last kWindow before the last sample, or since the first if that is less.
  // Thread-safe.
  double ratio() const { return ratio_.load(std::memory_order_relaxed); }

 private:
  struct Point {
    absl::Time time;
    absl::Duration busy;
  };
  std::deque<Point> points_;  // the first is what the window begins with
  std::atomic<double> ratio_ = 0;
};

}  // namespace opserve::server
