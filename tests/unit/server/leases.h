// Who holds leases in tests, and when.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace opserve::server {

inline constexpr uint32_t kTenant = 1;
inline constexpr uint32_t kOtherTenant = 2;

inline absl::Time At(int64_t second) { return absl::UnixEpoch() + absl::Seconds(second); }

}  // namespace opserve::server
