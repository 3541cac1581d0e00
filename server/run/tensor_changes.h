// Counts of requests' changes to resident tensors, for metrics.
#pragma once

#include <atomic>
#include <cstdint>

namespace opserve::server {

// Thread-safe.
struct TensorChanges {
  std::atomic<uint64_t> kept = 0;      // new tensors from results
  std::atomic<uint64_t> replaced = 0;  // contents that became a tensor's
  std::atomic<uint64_t> donated = 0;   // tensors that were given up
  std::atomic<uint64_t> failed = 0;    // requests that were to do one of these and failed
};

}  // namespace opserve::server
