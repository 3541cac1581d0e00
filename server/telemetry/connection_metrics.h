// The metric families of connections that were ended for their input, and of streams that any
// client may open.
#pragma once

#include <vector>

#include "prometheus/metric_family.h"
#include "server/access/connection_ledger.h"
#include "server/rpc/health_service.h"

namespace opserve::server {

// Thread-safe.
std::vector<prometheus::MetricFamily> CollectConnectionMetrics(const ConnectionLedger& ledger,
                                                               const HealthService& health);

}  // namespace opserve::server
