// How busy something was lately that several may use at the same time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

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

// The part of the last seconds in which something was busy. One thread samples, about once a
// second; scrapes see the time up to themselves, also if the sampler is held up, and change
// nothing. Nobody waits for anybody: there is no lock.
class Utilization {
 public:
  static constexpr absl::Duration kWindow = absl::Seconds(15);

  // `busy`: in total until `now`. By one thread at a time.
  void Sample(absl::Duration busy, absl::Time now);

  // From 0 to 1, since the last sample that is kWindow old, or the first if none is. 0 before the
  // first sample, and if the clock was set back since. `busy`: as for Sample, of a `now` of its
  // own. Thread-safe.
  double RatioUntil(absl::Duration busy, absl::Time now) const;

 private:
  struct Point {
    std::atomic<int64_t> time_ns = 0;
    std::atomic<int64_t> busy_ns = 0;
  };
  // Twice those of a window, so that a scrape may be held up as long before what it reads is
  // overwritten. Then it mixes two samples, once.
  static constexpr uint64_t kPoints = 32;

  const Point& At(uint64_t number) const { return points_[number % kPoints]; }

  // The points numbered from begin_ to end_; the first is the window's beginning at the last
  // sample.
  std::array<Point, kPoints> points_ = {};
  std::atomic<uint64_t> begin_ = 0;
  std::atomic<uint64_t> end_ = 0;
};

}  // namespace opserve::server
