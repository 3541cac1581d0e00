#include "server/telemetry/device_monitor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/telemetry/device_metrics.h"
#include "server/telemetry/resident_metrics.h"

namespace opserve::server {
namespace {

// Handles are refused on time by themselves; this is when their memory comes back.
constexpr absl::Duration kLeasePeriod = absl::Seconds(1);

v1::DeviceStatus::State ToProto(DeviceState state) {
  switch (state) {
    case DeviceState::kStarting:
      return v1::DeviceStatus::STATE_STARTING;
    case DeviceState::kReady:
      return v1::DeviceStatus::STATE_READY;
    case DeviceState::kDraining:
      return v1::DeviceStatus::STATE_DRAINING;
    case DeviceState::kQuarantined:
      return v1::DeviceStatus::STATE_QUARANTINED;
    case DeviceState::kFailed:
      return v1::DeviceStatus::STATE_FAILED;
  }
  return v1::DeviceStatus::STATE_UNSPECIFIED;
}

}  // namespace

DeviceMonitor::DeviceMonitor(const Scheduler& scheduler, const OperatorTable& operators,
                             const PinnedPool& pinned, ResidentTensors& residents,
                             PreparedPrograms& prepared)
    : scheduler_(scheduler),
      operators_(operators),
      pinned_(pinned),
      residents_(residents),
      prepared_(prepared) {
  lease_keeper_ = std::thread([this] {
    // The notification ends the wait at once when the daemon ends.
    while (!stop_.WaitForNotificationWithTimeout(kLeasePeriod)) {
      residents_.Expire(absl::Now());
      prepared_.Expire(absl::Now());
    }
  });
}

DeviceMonitor::~DeviceMonitor() {
  stop_.Notify();
  lease_keeper_.join();
}

std::vector<v1::DeviceStatus> DeviceMonitor::Status() const {
  std::vector<v1::DeviceStatus> all;
  for (const auto& service : scheduler_.devices()) {
    const Device& device = service->device();
    const DeviceMemoryPool::Statistics pool = device.memory().statistics();
    const Device::MemoryInfo memory = device.memory_info();
    const ResidentTensors::Usage residents = residents_.UsageOfDevice(device.id());
    v1::DeviceStatus& status = all.emplace_back();
    status.set_device(device.id());
    status.set_soc_name(device.acl().soc_name());
    // Drained is no state of the device, but of its service.
    status.set_state(service->is_drained() ? v1::DeviceStatus::STATE_DRAINED
                                           : ToProto(device.state()));
    status.set_state_reason(device.state_reason());
    // An administrator that waits for the drain needs the reason.
    if (device.state() == DeviceState::kDraining && residents.tensors > 0) {
      const ResidentTensors::Usage stuck = StuckOn(*service, residents_);
      absl::StrAppend(status.mutable_state_reason(), "; ", residents.tensors,
                      " resident tensors of ", residents.bytes, " bytes are still to be moved");
      if (stuck.tensors > 0) {
        absl::StrAppend(status.mutable_state_reason(), ", ", stuck.tensors, " of ", stuck.bytes,
                        " bytes have no place on another device");
      }
    }
    status.set_quarantines(device.quarantines().total());
    status.set_lanes(service->lanes());
    status.set_queued_requests(service->queued());
    status.set_executing_requests(service->executing());
    status.set_completed_requests(service->completed());
    status.set_memory_total_bytes(memory.total_bytes);
    status.set_memory_used_bytes(memory.used_bytes);
    status.set_pool_reserved_bytes(pool.reserved_bytes);
    status.set_pool_allocated_bytes(pool.allocated_bytes);
    status.set_resident_tensors(residents.tensors);
    status.set_resident_bytes(residents.bytes);
    status.set_captured_programs(static_cast<uint32_t>(service->captured().runs()));
    status.set_captured_bytes(static_cast<uint64_t>(service->captured().bytes()));
    for (const LoadedOperator& op : operators_.operators()) {
      if (!op.offer->IsWrongOn(device.id())) continue;
      v1::WrongOperator* wrong = status.add_wrong_operators();
      wrong->set_operator_(op.descriptor->name);
      wrong->set_problem(op.offer->FindingOn(device.id()).value_or(GoldenFinding{}).problem);
    }
  }
  return all;
}

std::vector<prometheus::MetricFamily> DeviceMonitor::Collect() const {
  return CollectDeviceMetrics(scheduler_, operators_, pinned_);
}

}  // namespace opserve::server
