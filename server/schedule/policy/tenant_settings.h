// A tenant's share of each device, and of the page-locked memory that the devices share.
#pragma once

#include <cstdint>

#include "server/schedule/policy/memory_zones.h"

namespace opserve::server {

struct TenantSettings {
  uint32_t tenant = 0;
  uint32_t weight = 1;  // of its share of lane time
  MemoryLimits memory = {};
  MemoryLimits pinned = {};
  // The part of `memory` for its resident tensors and uploads, which cannot be taken back.
  uint64_t resident_bytes = UINT64_MAX;
  bool is_configured = true;  // false: a reload has removed it, and its last requests may still run
};

}  // namespace opserve::server
