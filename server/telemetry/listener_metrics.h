// The metric families about connections.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "prometheus/metric_family.h"
#include "server/access/connection_counters.h"

namespace opserve::server {

struct ListenerConnections {
  const char* listener;  // the label: unix, tcp, admin, metrics
  const ConnectionCounters& counters;
};

// Takes no lock. Thread-safe.
std::vector<prometheus::MetricFamily> CollectListenerMetrics(
    absl::Span<const ListenerConnections> listeners);

}  // namespace opserve::server
