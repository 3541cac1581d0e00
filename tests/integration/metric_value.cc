#include "tests/integration/metric_value.h"

#include <algorithm>
#include <cmath>

namespace opserve::server {
namespace {

bool HasLabels(const prometheus::ClientMetric& metric, const MetricLabels& labels) {
  return metric.label.size() == labels.size() &&
         std::all_of(labels.begin(), labels.end(), [&](const auto& label) {
           return std::any_of(metric.label.begin(), metric.label.end(), [&](const auto& other) {
             return other.name == label.first && other.value == label.second;
           });
         });
}

}  // namespace

double MetricValue(const Daemon& daemon, const std::string& family, const MetricLabels& labels) {
  for (const prometheus::MetricFamily& candidate : daemon.CollectMetrics()) {
    if (candidate.name != family) continue;
    for (const prometheus::ClientMetric& metric : candidate.metric) {
      if (!HasLabels(metric, labels)) continue;
      return candidate.type == prometheus::MetricType::Counter ? metric.counter.value
                                                               : metric.gauge.value;
    }
  }
  return std::nan("");
}

double PinnedBytes(const Daemon& daemon, const std::string& tenant) {
  return MetricValue(daemon, "opserve_tenant_memory_bytes",
                     {{"tenant", tenant}, {"kind", "pinned"}});
}

}  // namespace opserve::server
