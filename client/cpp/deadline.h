// Internal: deadlines as gRPC wants them.
#pragma once

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace opserve {

// An infinite timeout gives the time point that gRPC takes for "never".
inline std::chrono::system_clock::time_point DeadlineAfter(absl::Duration timeout) {
  return absl::ToChronoTime(absl::Now() + timeout);
}

}  // namespace opserve
