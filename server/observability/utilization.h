// How busy something was lately that several may use at the same time.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
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

// The part of the last seconds in which something was busy. One thread samples; scrapes see the
// time up to themselves, also if the sampler is held up, and change nothing. Thread-safe.
class Utilization {
 public:
  static constexpr absl::Duration kWindow = absl::Seconds(15);

  // `busy`: in total until `now`. About once a second.
  void Sample(absl::Duration busy, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // From 0 to 1, since the last sample that is kWindow old, or the first if none is. 0 before the
  // first sample, and if the clock was set back since. `busy`: as for Sample, of a `now` of its
  // own.
  double RatioUntil(absl::Duration busy, absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Point {
    absl::Time time;
    absl::Duration busy;
  };
  mutable absl::Mutex mutex_;  // of the sampler and scrapes alone
  // The first is the window's beginning at the last sample.
  std::deque<Point> points_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve::server
