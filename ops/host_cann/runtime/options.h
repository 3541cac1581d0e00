// Limits of the process that tasks obey.
#pragma once

#include <cstdint>

namespace opserve::host_cann {

inline constexpr uint64_t kNoLimit = UINT64_MAX;

// How long a kernel queued now may run, in microseconds; kNoLimit: for ever.
uint64_t ExecutionLimitUs();

// How long a stream may wait for an event, in microseconds; 0: for ever.
uint64_t EventWaitLimitUs();

}  // namespace opserve::host_cann
