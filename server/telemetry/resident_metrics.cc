#include "server/telemetry/resident_metrics.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/observability/metrics.h"

namespace opserve::server {

ResidentTensors::Usage StuckOn(const DeviceService& service, const ResidentTensors& residents) {
  ResidentTensors::Usage stuck;
  // A stuck tenant has all its tensors on the device stuck.
  for (const uint32_t tenant : service.StuckTenants()) {
    const ResidentTensors::Usage usage = residents.UsageOn(service.device().id(), tenant);
    stuck.tensors += usage.tensors;
    stuck.bytes += usage.bytes;
  }
  return stuck;
}

std::vector<prometheus::MetricFamily> CollectResidentMetrics(const ResidentTensors& residents,
                                                             const Scheduler& scheduler,
                                                             const ResidentMover& mover) {
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
  MetricFamilyBuilder moves(
      "opserve_resident_moves_total",
      "Moves of a tenant's resident tensors away from a device that drains (moved), and those that "
      "were not possible: no other ready device has room (no_room) or none is ready (no_device), "
      "or a copy or a device failed (failed).",
      prometheus::MetricType::Counter);
  for (size_t result = 0; result < ResidentMover::kResults; ++result) {
    moves.Add({{"result", ResidentMover::ResultName(result)}},
              static_cast<double>(mover.results(result)));
  }
  families.push_back(moves.Build());
  families.push_back(MetricFamilyBuilder("opserve_resident_moved_bytes_total",
                                         "Bytes of resident tensors that were moved.",
                                         prometheus::MetricType::Counter)
                         .Add({}, static_cast<double>(mover.moved_bytes()))
                         .Build());
  families.push_back(MetricFamilyBuilder("opserve_resident_moving_bytes",
                                         "Bytes of resident tensors that are being moved; requests "
                                         "that use them wait.",
                                         prometheus::MetricType::Gauge)
                         .Add({}, static_cast<double>(mover.moving_bytes()))
                         .Build());
  MetricFamilyBuilder stuck("opserve_resident_stuck_bytes",
                            "Bytes of resident tensors on a device that drains, for which there is "
                            "no other place; requests that use them are refused.",
                            prometheus::MetricType::Gauge);
  // A device that does not drain has none, and shows 0.
  for (const auto& service : scheduler.devices()) {
    stuck.Add({{"device", absl::StrCat(service->device().id())}},
              static_cast<double>(StuckOn(*service, residents).bytes));
  }
  families.push_back(stuck.Build());
  return families;
}

}  // namespace opserve::server
