// Metrics of requests that use and change resident tensors, and of their moves between devices.
#pragma once

#include <vector>

#include "prometheus/metric_family.h"
#include "server/run/resident_tensors.h"
#include "server/schedule/lanes/resident_mover.h"
#include "server/schedule/lanes/scheduler.h"

namespace opserve::server {

// Of the resident tensors of a device that drains, those for which there is no other place.
ResidentTensors::Usage StuckOn(const DeviceService& service, const ResidentTensors& residents);

// Thread-safe; takes the locks of TensorClaims and ResidentTensors for a moment.
std::vector<prometheus::MetricFamily> CollectResidentMetrics(const ResidentTensors& residents,
                                                             const Scheduler& scheduler,
                                                             const ResidentMover& mover);

}  // namespace opserve::server
