// The metric families about devices, their pools and their resident tensors.
#pragma once

#include <vector>

#include "prometheus/metric_family.h"
#include "server/device/memory/pinned_pool.h"
#include "server/program/operator_table.h"
#include "server/schedule/lanes/scheduler.h"

namespace opserve::server {

// Never blocks on a device. Thread-safe.
std::vector<prometheus::MetricFamily> CollectDeviceMetrics(const Scheduler& scheduler,
                                                           const OperatorTable& operators,
                                                           const PinnedPool& pinned);

}  // namespace opserve::server
