// Metrics of requests that use and change resident tensors.
#pragma once

#include <vector>

#include "prometheus/metric_family.h"
#include "server/execution/resident_tensors.h"

namespace opserve::server {

// Thread-safe; takes the lock of TensorClaims for a moment.
std::vector<prometheus::MetricFamily> CollectResidentMetrics(const ResidentTensors& residents);

}  // namespace opserve::server
