#include "server/telemetry/resident_metrics.h"

#include <atomic>
#include <utility>

#include "server/observability/metrics.h"

namespace opserve::server {

std::vector<prometheus::MetricFamily> CollectResidentMetrics(const ResidentTensors& residents) {
  std::vector<prometheus::MetricFamily> families;
  families.push_back(
      MetricFamilyBuilder("opserve_tensor_waiting_requests",
                          "Requests and downloads that wait for their turn with a resident tensor, "
                          "because another request changes it, or waits to.",
                          prometheus::MetricType::Gauge)
          .Add({}, static_cast<double>(residents.claims().waiting()))
          .Build());
  MetricFamilyBuilder changes(
      "opserve_tensor_changes_total",
      "Results that became resident tensors (kept) or the content of one (replaced), tensors that "
      "were given up (donated), and requests that were to do so and failed (failed).",
      prometheus::MetricType::Counter);
  const TensorChanges& counts = residents.changes();
  for (const auto& [result, count] :
       {std::pair("kept", &counts.kept), std::pair("replaced", &counts.replaced),
        std::pair("donated", &counts.donated), std::pair("failed", &counts.failed)}) {
    changes.Add({{"result", result}}, static_cast<double>(count->load(std::memory_order_relaxed)));
  }
  families.push_back(changes.Build());
  return families;
}

}  // namespace opserve::server
