// Names of the ways in which the device memory pool serves allocations.
#pragma once

#include <array>

#include "absl/strings/string_view.h"
#include "server/device/memory/memory_pool.h"

namespace opserve::server {

// By DeviceMemoryPool::Outcome: the label of its metrics, and in capitals the end of the wire's and
// the log's names (Receipt.PoolOutcome).
inline constexpr std::array<absl::string_view, DeviceMemoryPool::kOutcomes> kPoolOutcomeNames = {
    "hit", "split", "cross_stream", "grow", "retry", "oom"};

}  // namespace opserve::server
