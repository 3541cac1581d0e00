// Bounds how often something is done, by whichever threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace opserve::server {

// Admits one per interval on average, and kBurst at once after a while without any. It remembers
// only when the next would be due if they came evenly (the generic cell rate algorithm), so it
// needs no lock. Thread-safe.
class RateLimiter {
 public:
  static constexpr int kBurst = 10;

  // Whether one more may be done at `now`; if not, that is counted.
  bool Admit(absl::Time now, absl::Duration interval) {
    const int64_t now_ns = absl::ToUnixNanos(now);
    const int64_t interval_ns = absl::ToInt64Nanoseconds(interval);
    int64_t due = due_ns_.load(std::memory_order_relaxed);
    while (due <= now_ns + (kBurst - 1) * interval_ns) {
      const int64_t next = std::max(due, now_ns) + interval_ns;
      if (due_ns_.compare_exchange_weak(due, next, std::memory_order_relaxed)) return true;
    }
    refused_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

  // Those not admitted since it was last called.
  uint64_t TakeRefused() { return refused_.exchange(0, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> due_ns_ = 0;
  std::atomic<uint64_t> refused_ = 0;
};

}  // namespace opserve::server
