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
};

}  // namespace opserve::server
