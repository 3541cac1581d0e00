// Cores of a device as its attributes name them. As on an Ascend910B3, whatever the host CANN
// stands in for.
#pragma once

#include <cstdint>

namespace opserve::host_cann {

inline constexpr int64_t kCubeCores = 20;
inline constexpr int64_t kVectorCores = 40;

}  // namespace opserve::host_cann
