// When a caller that is refused now should try again.
#pragma once

#include <cstdint>
#include <random>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace opserve::server {

inline constexpr absl::Duration kShortestPushback = absl::Milliseconds(10);
inline constexpr absl::Duration kLongestPushback = absl::Seconds(10);

// Milliseconds until the present queue will have been served, if that takes `drain_time`; spread by
// 10 % either way, so that callers refused together do not come back together. Always between the
// two bounds; never smaller for a longer `drain_time` and the same random numbers.
int64_t PushbackMilliseconds(absl::Duration drain_time, std::mt19937_64& random);

// The same error with a hint when to try again, if it is kResourceExhausted and has none: what it
// lacks comes back as requests end, which takes `drain_time` for those that are there.
absl::Status WithPushback(absl::Status error, absl::Duration drain_time);

}  // namespace opserve::server
