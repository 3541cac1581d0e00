// How many cores of each kind kernels may use. Kept and reported: on the CPU kernels do not follow.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "acl/acl.h"

namespace opserve::host_cann {

// The limits of a device or of a stream. Thread-safe.
class CoreLimits {
 public:
  // None: no limit was set.
  std::optional<uint32_t> Get(aclrtDevResLimitType type) const {
    const uint32_t limit = limits_[type].load(std::memory_order_relaxed);
    return limit == kUnset ? std::nullopt : std::optional(limit);
  }
  void Set(aclrtDevResLimitType type, uint32_t limit) { limits_[type] = limit; }
  void Reset() {
    for (std::atomic<uint32_t>& limit : limits_) limit = kUnset;
  }

 private:
  static constexpr uint32_t kUnset = 0;
  std::array<std::atomic<uint32_t>, 2> limits_{};  // by type
};

}  // namespace opserve::host_cann
