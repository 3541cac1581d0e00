// The metric families about tenants: their waiting tasks, and their shares of devices and memory.
#pragma once

#include <vector>

#include "prometheus/metric_family.h"
#include "server/observability/tenant_series.h"
#include "server/request/idempotency_cache.h"
#include "server/schedule/lanes/scheduler.h"
#include "server/shared_memory/shared_memory_quota.h"

namespace opserve::server {

// `shared_memory`: null if there is none. Takes no lock. Thread-safe.
std::vector<prometheus::MetricFamily> CollectTenantMetrics(const TenantSeries& tenants,
                                                           const Scheduler& scheduler,
                                                           const IdempotencyCache& idempotency,
                                                           const SharedMemoryQuota* shared_memory);

}  // namespace opserve::server
