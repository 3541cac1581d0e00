// Metrics of programs that are kept for later requests.
#pragma once

#include <vector>

#include "prometheus/metric_family.h"
#include "server/native/known_requests.h"
#include "server/run/prepared_programs.h"

namespace opserve::server {

// Thread-safe; takes the lock of the programs for a moment.
std::vector<prometheus::MetricFamily> CollectPreparedMetrics(const PreparedPrograms& programs);

// Of programs that were not prepared. Thread-safe; takes no lock.
std::vector<prometheus::MetricFamily> CollectBoundMetrics(const KnownRequestCounters& counters);

}  // namespace opserve::server
