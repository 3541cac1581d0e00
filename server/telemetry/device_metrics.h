// The metric families about devices, their pools and their resident tensors.
#pragma once

#include <vector>

#include "prometheus/metric_family.h"
#include "server/device/pinned_pool.h"
#include "server/execution/operator_table.h"
#include "server/scheduling/scheduler.h"

namespace opserve::server {

// Never blocks on a device. Thread-safe.
std::vector<prometheus::MetricFamily> CollectDeviceMetrics(const Scheduler& scheduler,
                                                           const OperatorTable& operators,
                                                           const PinnedPool& pinned);

}  // namespace opserve::server
