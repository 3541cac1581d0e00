// What a tenant may have of each device, and of the page-locked memory that the devices share.
#pragma once

#include <cstdint>

#include "server/scheduling/memory_zones.h"

namespace opserve::server {

struct TenantSettings {
  uint32_t tenant = 0;
  uint32_t weight = 1;  // of its share of lane time
  MemoryLimits memory = {};
  MemoryLimits pinned = {};
  // Of `memory`, what its resident tensors and uploads may have: nobody can take it back.
  uint64_t resident_bytes = UINT64_MAX;
  bool is_configured = true;  // false: a reload has removed it, and its last requests may still run
};

}  // namespace opserve::server
