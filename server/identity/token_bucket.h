// A limit on a rate (requests or bytes a second) that allows a burst.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace opserve::server {

// Thread-safe, without locks. It keeps one number (the generic cell rate algorithm): the time at
// which the bucket would be full again.
class TokenBucket {
 public:
  // `rate` a second and `burst` at once, both above zero. Starts full.
  TokenBucket(double rate, double burst);

  // Takes `amount`, and returns nothing; or takes nothing, and returns the time until it could
  // succeed (InfiniteDuration: never, it is more than the burst).
  std::optional<absl::Duration> TryTake(double amount, absl::Time now);

 private:
  int64_t NanosecondsFor(double amount) const;

  const double rate_;
  const double burst_;
  const int64_t depth_ns_;  // time in which an empty bucket fills
  std::atomic<int64_t> full_at_ns_ = 0;
};

}  // namespace opserve::server
