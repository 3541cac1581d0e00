// The metric families about the daemon's distance from its bounds, and its refusals at them.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "prometheus/metric_family.h"
#include "server/device/memory/pinned_pool.h"
#include "server/identity/tenants.h"
#include "server/schedule/lanes/scheduler.h"

namespace opserve::server {

// The resources with bounds. All outlives the call.
struct OverloadSources {
  const Scheduler& scheduler;
  const PinnedPool& pinned;
  absl::Span<Tenant* const> tenants;
  uint32_t connections = 0;
  uint32_t max_connections = 1;
};

// Takes no lock. Thread-safe.
std::vector<prometheus::MetricFamily> CollectOverloadMetrics(const OverloadSources& sources);

}  // namespace opserve::server
