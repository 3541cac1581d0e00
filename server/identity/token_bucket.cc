#include "server/identity/token_bucket.h"

#include <algorithm>
#include <cmath>

namespace opserve::server {

// Far more than any bucket takes to fill, and far from overflowing when added to a time.
constexpr double kLongestWaitNs = 1e18;

TokenBucket::TokenBucket(double rate, double burst)
    : rate_(rate), burst_(burst), depth_ns_(NanosecondsFor(burst)) {}

int64_t TokenBucket::NanosecondsFor(double amount) const {
  // Rounded up: many small amounts must not be free.
  return static_cast<int64_t>(std::min(std::ceil(amount / rate_ * 1e9), kLongestWaitNs));
}

std::optional<absl::Duration> TokenBucket::TryTake(double amount, absl::Time now) {
  if (amount > burst_) return absl::InfiniteDuration();
  const int64_t now_ns = absl::ToUnixNanos(now);
  const int64_t cost_ns = NanosecondsFor(amount);
  int64_t full_at = full_at_ns_.load(std::memory_order_relaxed);
  while (true) {
    const int64_t next = std::max(full_at, now_ns) + cost_ns;
    if (next - now_ns > depth_ns_) return absl::Nanoseconds(next - now_ns - depth_ns_);
    if (full_at_ns_.compare_exchange_weak(full_at, next, std::memory_order_relaxed)) {
      return std::nullopt;
    }
  }
}

}  // namespace opserve::server
