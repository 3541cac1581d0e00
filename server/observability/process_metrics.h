// The metrics of every process, under the names that Prometheus's client libraries agreed upon.
#pragma once

#include <string>
#include <vector>

#include "prometheus/metric_family.h"

namespace opserve::server {

// process_cpu_seconds_total, process_start_time_seconds, process_resident_memory_bytes,
// process_virtual_memory_bytes, process_open_fds and process_max_fds of this process. Values that
// the system does not tell are left out. `proc`: where procfs is. Thread-safe.
std::vector<prometheus::MetricFamily> CollectProcessMetrics(const std::string& proc = "/proc");

}  // namespace opserve::server
