#include "server/device_monitor.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/observability/metrics.h"

namespace opserve::server {
namespace {

using prometheus::MetricType;

constexpr absl::Duration kSamplePeriod = absl::Seconds(1);
constexpr const char* kOutcomeNames[DeviceMemoryPool::kOutcomes] = {"hit", "cross_stream", "grow",
                                                                    "retry", "oom"};
constexpr std::pair<Device::State, const char*> kStates[] = {{Device::State::kStarting, "starting"},
                                                             {Device::State::kReady, "ready"},
                                                             {Device::State::kFailed, "failed"}};

v1::DeviceStatus::State ToProto(Device::State state) {
  switch (state) {
    case Device::State::kStarting:
      return v1::DeviceStatus::STATE_STARTING;
    case Device::State::kReady:
      return v1::DeviceStatus::STATE_READY;
    case Device::State::kFailed:
      return v1::DeviceStatus::STATE_FAILED;
  }
  return v1::DeviceStatus::STATE_UNSPECIFIED;
}

std::string Label(const DeviceService& service) { return absl::StrCat(service.device().id()); }

// A family with one sample per device.
template <typename Value>
prometheus::MetricFamily PerDevice(const Scheduler& scheduler, std::string name, std::string help,
                                   MetricType type, Value value, MetricLabels more_labels = {}) {
  MetricFamilyBuilder family(std::move(name), std::move(help), type);
  for (const auto& service : scheduler.devices()) {
    MetricLabels labels = {{"device", Label(*service)}};
    labels.insert(labels.end(), more_labels.begin(), more_labels.end());
    family.Add(labels, static_cast<double>(value(*service)));
  }
  return family.Build();
}

prometheus::MetricFamily PoolGauge(const Scheduler& scheduler, absl::string_view what,
                                   std::string help,
                                   uint64_t DeviceMemoryPool::Statistics::*value) {
  return PerDevice(scheduler, absl::StrCat("opserve_workspace_pool_", what, "_bytes"),
                   std::move(help), MetricType::Gauge, [value](const DeviceService& service) {
                     return service.device().memory().statistics().*value;
                   });
}

}  // namespace

DeviceMonitor::DeviceMonitor(const Scheduler& scheduler, const PinnedPool& pinned)
    : scheduler_(scheduler), pinned_(pinned), memory_(scheduler.devices().size()) {
  Sample();
  sampler_ = std::thread([this] {
    while (!stop_.WaitForNotificationWithTimeout(kSamplePeriod)) Sample();
  });
}

DeviceMonitor::~DeviceMonitor() {
  stop_.Notify();
  sampler_.join();
}

void DeviceMonitor::Sample() {
  for (size_t i = 0; i < memory_.size(); ++i) {
    // What cannot be had keeps its last value; the device's own calls notice if it is lost.
    if (const auto info = scheduler_.devices()[i]->device().memory_info(); info.ok()) {
      memory_[i].total_bytes = info->total_bytes;
      memory_[i].used_bytes = info->used_bytes;
    }
  }
}

std::vector<v1::DeviceStatus> DeviceMonitor::Status() const {
  std::vector<v1::DeviceStatus> all;
  for (size_t i = 0; i < memory_.size(); ++i) {
    const DeviceService& service = *scheduler_.devices()[i];
    const DeviceMemoryPool::Statistics pool = service.device().memory().statistics();
    v1::DeviceStatus& status = all.emplace_back();
    status.set_device(service.device().id());
    status.set_soc_name(service.device().acl().soc_name());
    status.set_state(ToProto(service.device().state()));
    status.set_lanes(service.lanes());
    status.set_queued_requests(service.queued());
    status.set_executing_requests(service.executing());
    status.set_memory_total_bytes(memory_[i].total_bytes);
    status.set_memory_used_bytes(memory_[i].used_bytes);
    status.set_pool_reserved_bytes(pool.reserved_bytes);
    status.set_pool_allocated_bytes(pool.allocated_bytes);
    status.set_completed_requests(service.completed());
  }
  return all;
}

std::vector<prometheus::MetricFamily> DeviceMonitor::Collect() const {
  std::vector<prometheus::MetricFamily> families;
  const auto gauge = [&](std::string name, std::string help, auto value, MetricLabels labels = {}) {
    families.push_back(PerDevice(scheduler_, std::move(name), std::move(help), MetricType::Gauge,
                                 value, std::move(labels)));
  };
  gauge("opserve_queue_depth", "Requests waiting for a lane.",
        [](const DeviceService& s) { return s.queued(); }, {{"tenant", "default"}});
  gauge("opserve_queue_oldest_age_seconds", "Age of the request that has waited longest.",
        [](const DeviceService& s) {
          const absl::Time oldest = s.oldest_arrival();
          return oldest == absl::UnixEpoch() ? 0 : absl::ToDoubleSeconds(absl::Now() - oldest);
        });
  gauge("opserve_requests_in_flight", "Requests that lanes are executing.",
        [](const DeviceService& s) { return s.executing(); });

  using Pool = DeviceMemoryPool::Statistics;
  families.push_back(PoolGauge(scheduler_, "reserved", "Taken from the device: allocated and idle.",
                               &Pool::reserved_bytes));
  families.push_back(PoolGauge(scheduler_, "allocated", "Lent to requests, in whole blocks.",
                               &Pool::allocated_bytes));
  families.push_back(PoolGauge(scheduler_, "requested", "Lent to requests, as asked for.",
                               &Pool::requested_bytes));
  families.push_back(PoolGauge(scheduler_, "idle", "Kept for later requests.", &Pool::idle_bytes));
  families.push_back(PoolGauge(scheduler_, "peak", "Highest reserved so far.", &Pool::peak_bytes));
  MetricFamilyBuilder allocations("opserve_workspace_pool_allocations_total",
                                  "How the pool served allocations.", MetricType::Counter);
  MetricFamilyBuilder states("opserve_device_state", "1 for the state a device is in.",
                             MetricType::Gauge);
  for (const auto& service : scheduler_.devices()) {
    const Pool pool = service->device().memory().statistics();
    for (int i = 0; i < DeviceMemoryPool::kOutcomes; ++i) {
      allocations.Add({{"device", Label(*service)}, {"result", kOutcomeNames[i]}},
                      static_cast<double>(pool.allocations[i]));
    }
    for (const auto& [state, name] : kStates) {
      states.Add({{"device", Label(*service)}, {"state", name}},
                 service->device().state() == state ? 1 : 0);
    }
  }
  families.push_back(allocations.Build());
  families.push_back(states.Build());
  families.push_back(PerDevice(
      scheduler_, "opserve_workspace_pool_trimmed_bytes_total", "Given back to the device.",
      MetricType::Counter,
      [](const DeviceService& s) { return s.device().memory().statistics().trimmed_bytes_total; }));

  MetricFamilyBuilder total("opserve_device_memory_total_bytes", "Memory of the device.",
                            MetricType::Gauge);
  MetricFamilyBuilder used("opserve_device_memory_used_bytes", "Of it, in use by anybody.",
                           MetricType::Gauge);
  for (size_t i = 0; i < memory_.size(); ++i) {
    const MetricLabels labels = {{"device", Label(*scheduler_.devices()[i])}};
    total.Add(labels, static_cast<double>(memory_[i].total_bytes.load()));
    used.Add(labels, static_cast<double>(memory_[i].used_bytes.load()));
  }
  families.push_back(total.Build());
  families.push_back(used.Build());

  const PinnedPool::Statistics pinned = pinned_.statistics();
  families.push_back(MetricFamilyBuilder("opserve_pinned_pool_reserved_bytes",
                                         "Page-locked host memory taken from the system.",
                                         MetricType::Gauge)
                         .Add({{"numa_node", "any"}}, static_cast<double>(pinned.reserved_bytes))
                         .Build());
  families.push_back(MetricFamilyBuilder("opserve_pinned_pool_allocated_bytes",
                                         "Of it, holding results on their way out.",
                                         MetricType::Gauge)
                         .Add({{"numa_node", "any"}}, static_cast<double>(pinned.allocated_bytes))
                         .Build());
  return families;
}

}  // namespace opserve::server
