// What a scrape says.
#pragma once

#include "server/daemon.h"
#include "server/observability/metrics.h"

namespace opserve::server {

// Of the sample with exactly these labels, in any order; NaN: there is none.
double MetricValue(const Daemon& daemon, const std::string& family, const MetricLabels& labels);

// The page-locked memory of a tenant, in bytes.
double PinnedBytes(const Daemon& daemon, const std::string& tenant);

}  // namespace opserve::server
