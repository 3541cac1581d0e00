// Sizes that tests speak of.
#pragma once

#include <cstdint>

namespace opserve {

inline constexpr uint64_t kMiB = 1 << 20;

}  // namespace opserve
