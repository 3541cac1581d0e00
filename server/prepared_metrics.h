// Metrics of prepared programs.
#pragma once

#include <vector>

#include "prometheus/metric_family.h"
#include "server/execution/prepared_programs.h"

namespace opserve::server {

// Thread-safe; takes the lock of the programs for a moment.
std::vector<prometheus::MetricFamily> CollectPreparedMetrics(const PreparedPrograms& programs);

}  // namespace opserve::server
