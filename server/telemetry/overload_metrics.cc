#include "server/telemetry/overload_metrics.h"

#include <algorithm>

#include "server/observability/metrics.h"

namespace opserve::server {
namespace {

using prometheus::MetricType;

double Ratio(uint64_t used, uint64_t bound) {
  // Bounds can be exceeded for a moment, and after a reload for longer.
  return std::min(1.0,
                  static_cast<double>(used) / static_cast<double>(std::max<uint64_t>(bound, 1)));
}

// The largest value(DeviceService) there is.
template <typename Value>
double LargestOf(const Scheduler& scheduler, Value value) {
  double largest = 0;
  for (const auto& service : scheduler.devices()) largest = std::max(largest, value(*service));
  return largest;
}

double QueuePressure(const DeviceService& service) {
  return Ratio(service.queued(), service.queue_capacity());
}

double TenantQueuePressure(const DeviceService& service) {
  uint64_t most = 0;
  uint64_t most_work = 0;
  // Slots that tenants share would add up several.
  for (size_t slot = 0; slot < kNamedTenantSlots; ++slot) {
    most = std::max(most, service.queue().tenant_depths().OfSlot(slot));
    most_work = std::max(most_work, service.queue().tenant_work().OfSlot(slot));
  }
  return std::max(Ratio(most, service.queue_capacity_per_tenant()),
                  Ratio(most_work, service.queue_work_per_tenant()));
}

// Memory may be booked and not taken from the pool yet, or, as workspaces are, taken without being
// booked.
double DeviceMemoryPressure(const DeviceService& service) {
  const DeviceMemoryPool& pool = service.device().memory();
  return Ratio(std::max(pool.statistics().allocated_bytes, service.queue().booked_bytes()),
               pool.options().max_bytes);
}

double PendingPressure(absl::Span<Tenant* const> tenants) {
  double largest = 0;
  for (const Tenant* tenant : tenants) {
    largest = std::max(largest, Ratio(tenant->pending(), tenant->max_pending()));
  }
  return largest;
}

// Requests go to another device as long as one has room.
bool AreAllQueuesFull(const Scheduler& scheduler) {
  bool is_one_ready = false;
  for (const auto& service : scheduler.devices()) {
    // A device that is not ready takes no requests, full or not.
    if (service->device().state() != DeviceState::kReady) continue;
    if (service->queued() < service->queue_capacity()) return false;
    is_one_ready = true;
  }
  return is_one_ready;
}

bool WaitsForDeviceMemory(const Scheduler& scheduler) {
  return std::any_of(scheduler.devices().begin(), scheduler.devices().end(),
                     [](const auto& service) {
                       return service->queue().WaitsForMemory() ||
                              service->device().memory().statistics().waiting > 0;
                     });
}

}  // namespace

std::vector<prometheus::MetricFamily> CollectOverloadMetrics(const OverloadSources& sources) {
  const Scheduler& scheduler = sources.scheduler;
  // Computed once for both families, so that a pressure of 1 and its action show together.
  const double tenant_queue = LargestOf(scheduler, TenantQueuePressure);
  const double tenant_requests = PendingPressure(sources.tenants);
  const double connections = Ratio(sources.connections, sources.max_connections);
  MetricFamilyBuilder pressure(
      "opserve_overload_pressure_ratio",
      "How much of a bound is used, where it is used most: requests in a device's queue (queue), "
      "those of one tenant there or their work (tenant_queue), requests of a tenant in progress "
      "(tenant_requests), connections, a device's pool with bytes that uploads have booked and not "
      "written (device_memory), the pool for results "
      "(pinned_memory).",
      MetricType::Gauge);
  pressure.Add({{"monitor", "queue"}}, LargestOf(scheduler, QueuePressure))
      .Add({{"monitor", "tenant_queue"}}, tenant_queue)
      .Add({{"monitor", "tenant_requests"}}, tenant_requests)
      .Add({{"monitor", "connections"}}, connections)
      .Add({{"monitor", "device_memory"}}, LargestOf(scheduler, DeviceMemoryPressure))
      .Add({{"monitor", "pinned_memory"}},
           Ratio(sources.pinned.statistics().allocated_bytes, sources.pinned.limit_bytes()));
  MetricFamilyBuilder actions(
      "opserve_overload_action_active",
      "1 while a bound is reached, for each measure taken: new requests are refused since every "
      "queue is full (refuse_requests), those of a tenant that has as many as it may "
      "(refuse_tenant_requests), new connections are closed (refuse_connections), requests that "
      "need memory wait in the queue or on a lane (wait_for_device_memory, "
      "wait_for_pinned_memory), or until their connection reads earlier results "
      "(wait_for_readers).",
      MetricType::Gauge);
  actions.Add({{"action", "refuse_requests"}}, AreAllQueuesFull(scheduler))
      .Add({{"action", "refuse_tenant_requests"}}, tenant_queue >= 1 || tenant_requests >= 1)
      .Add({{"action", "refuse_connections"}}, connections >= 1)
      .Add({{"action", "wait_for_device_memory"}}, WaitsForDeviceMemory(scheduler))
      .Add({{"action", "wait_for_pinned_memory"}}, scheduler.pinned_zones().AnybodyWaits())
      .Add({{"action", "wait_for_readers"}}, scheduler.pinned_zones().WaitsForReaders());
  return {pressure.Build(), actions.Build()};
}

}  // namespace opserve::server
