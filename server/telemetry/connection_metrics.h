// The metric families of connections: of each listener, those that were ended for their input or
// because the client took nothing, and streams that any client may open.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "prometheus/metric_family.h"
#include "server/grpc/health_service.h"
#include "server/net/connection_counters.h"
#include "server/net/connection_ledger.h"

namespace opserve::server {

struct ListenerConnections {
  const char* listener;  // the label: unix, tcp, admin, metrics
  const ConnectionCounters& counters;
};

struct ConnectionSources {
  absl::Span<const ListenerConnections> listeners;
  const ConnectionLedger& ledger;
  const HealthService& health;
  // Ended because the client took nothing.
  uint64_t stalled_calls = 0;
  uint64_t stalled_connections = 0;
};

// Takes no lock of listeners. Thread-safe.
std::vector<prometheus::MetricFamily> CollectConnectionMetrics(const ConnectionSources& sources);

}  // namespace opserve::server
