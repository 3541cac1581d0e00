#include "server/telemetry/device_metrics.h"

#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/device/memory/pool_outcome.h"
#include "server/observability/metrics.h"

namespace opserve::server {
namespace {

using prometheus::MetricType;
using Pool = DeviceMemoryPool::Statistics;

// Builds families one by one, each over all devices.
class DeviceMetrics {
 public:
  explicit DeviceMetrics(const Scheduler& scheduler) : scheduler_(scheduler) {}

  // A family with one sample per device, value(DeviceService) each.
  template <typename Value>
  void Add(std::string name, std::string help, MetricType type, Value value) {
    MetricFamilyBuilder family(std::move(name), std::move(help), type);
    for (const auto& service : scheduler_.devices()) {
      family.Add({{"device", Label(*service)}}, static_cast<double>(value(*service)));
    }
    families_.push_back(family.Build());
  }

  void AddPool(absl::string_view what, std::string help, uint64_t Pool::*value,
               MetricType type = MetricType::Gauge) {
    Add(absl::StrCat("opserve_workspace_pool_", what), std::move(help), type,
        [value](const DeviceService& s) { return s.device().memory().statistics().*value; });
  }

  void AddFamily(MetricFamilyBuilder family) { families_.push_back(family.Build()); }

  void AddOne(std::string name, std::string help, MetricType type, const MetricLabels& labels,
              double value) {
    AddFamily(MetricFamilyBuilder(std::move(name), std::move(help), type).Add(labels, value));
  }

  std::vector<prometheus::MetricFamily> Take() { return std::move(families_); }

  static std::string Label(const DeviceService& service) {
    return absl::StrCat(service.device().id());
  }

 private:
  const Scheduler& scheduler_;
  std::vector<prometheus::MetricFamily> families_;
};

void AddQueues(DeviceMetrics& metrics) {
  metrics.Add("opserve_queue_oldest_age_seconds", "Age of the request that has waited longest.",
              MetricType::Gauge, [](const DeviceService& s) {
                const absl::Time oldest = s.oldest_arrival();
                // The epoch means that the queue is empty.
                return oldest == absl::UnixEpoch() ? 0
                                                   : absl::ToDoubleSeconds(absl::Now() - oldest);
              });
  metrics.Add("opserve_requests_in_flight", "Requests that lanes are executing.", MetricType::Gauge,
              [](const DeviceService& s) { return s.executing(); });
}

void AddPools(const Scheduler& scheduler, DeviceMetrics& metrics) {
  metrics.AddPool("reserved_bytes", "Taken from the device: allocated, idle and retired.",
                  &Pool::reserved_bytes);
  metrics.AddPool("allocated_bytes", "Lent to requests, in whole blocks.", &Pool::allocated_bytes);
  metrics.Add("opserve_workspace_pool_booked_bytes",
              "Booked for executing requests (without workspaces), resident tensors and uploads; "
              "uploads take it from the pool with their first chunk.",
              MetricType::Gauge, [](const DeviceService& s) { return s.queue().booked_bytes(); });
  metrics.Add("opserve_upload_unwritten_bytes",
              "Of the booked bytes, those that uploads have not written yet.", MetricType::Gauge,
              [](const DeviceService& s) { return s.queue().unwritten_bytes(); });
  metrics.AddPool("requested_bytes", "Lent to requests, as asked for.", &Pool::requested_bytes);
  metrics.AddPool("idle_bytes", "Kept for later requests.", &Pool::idle_bytes);
  metrics.AddPool("retired_bytes", "Kept for the lane that used it last, which may still do so.",
                  &Pool::retired_bytes);
  metrics.AddPool("largest_free_bytes", "Largest idle block.", &Pool::largest_free_bytes);
  metrics.AddPool("peak_bytes", "Highest reserved so far.", &Pool::peak_bytes);
  metrics.Add(
      "opserve_workspace_pool_fragmentation_ratio",
      "Part of the idle memory outside the largest idle block.", MetricType::Gauge,
      [](const DeviceService& s) { return s.device().memory().statistics().fragmentation(); });
  metrics.AddPool("trimmed_bytes_total", "Given back to the device.", &Pool::trimmed_bytes_total,
                  MetricType::Counter);
  metrics.AddPool("scrubbed_bytes_total", "Overwritten before another tenant got it.",
                  &Pool::scrubbed_bytes_total, MetricType::Counter);
  metrics.AddPool("merges_total", "Neighbouring free blocks that became one.", &Pool::merges_total,
                  MetricType::Counter);
  metrics.AddPool("trims_total", "Times idle memory was given back to the device.",
                  &Pool::trims_total, MetricType::Counter);
  metrics.AddPool("waits_total", "Allocations that waited for memory of other requests.",
                  &Pool::waits_total, MetricType::Counter);
  metrics.Add("opserve_workspace_pool_wait_seconds_total", "How long they waited, all together.",
              MetricType::Counter, [](const DeviceService& s) {
                return absl::ToDoubleSeconds(s.device().memory().statistics().wait_time_total);
              });
  MetricFamilyBuilder allocations("opserve_workspace_pool_allocations_total",
                                  "How the pool served allocations.", MetricType::Counter);
  for (const auto& service : scheduler.devices()) {
    const Pool pool = service->device().memory().statistics();
    for (int i = 0; i < DeviceMemoryPool::kOutcomes; ++i) {
      allocations.Add({{"device", DeviceMetrics::Label(*service)},
                       {"result", std::string(kPoolOutcomeNames[static_cast<size_t>(i)])}},
                      static_cast<double>(pool.allocations[i]));
    }
  }
  metrics.AddFamily(std::move(allocations));
}

// A family with a sample for each device and each of `names`, value(DeviceService, Kind) each.
template <typename Kind, size_t kKinds, typename Value>
void AddKinds(const Scheduler& scheduler, DeviceMetrics& metrics, const char* name,
              const char* help, const std::array<absl::string_view, kKinds>& names, Value value) {
  MetricFamilyBuilder family(name, help, MetricType::Counter);
  for (const auto& service : scheduler.devices()) {
    for (size_t kind = 0; kind < kKinds; ++kind) {
      family.Add({{"device", DeviceMetrics::Label(*service)}, {"kind", std::string(names[kind])}},
                 static_cast<double>(value(service->device(), static_cast<Kind>(kind))));
    }
  }
  metrics.AddFamily(std::move(family));
}

void AddFaults(const Scheduler& scheduler, DeviceMetrics& metrics) {
  AddKinds<Fault>(
      scheduler, metrics, "opserve_device_errors_total",
      "Faults of a device: a kernel crashed (kernel) or did not end in time "
      "(timeout), a stream could not be stopped (stream), its memory is damaged "
      "(memory), it was lost (device), did not end a golden case or computed none right "
      "(self_check) or could not be brought up (set_up).",
      kFaultNames, [](const Device& device, Fault kind) { return device.errors().of(kind); });
  AddKinds<Fault>(scheduler, metrics, "opserve_device_quarantines_total",
                  "Times a device was taken out of service, by the error it was for.", kFaultNames,
                  [](const Device& device, Fault kind) { return device.quarantines().of(kind); });
  AddKinds<StreamAbort>(
      scheduler, metrics, "opserve_stream_aborts_total",
      "Streams stopped, since a kernel did not end in time (timeout), its call was cancelled or "
      "past its deadline "
      "(cancelled) or it did not become idle after an error (error); or that could not be stopped "
      "and were given up (abandoned).",
      kStreamAbortNames,
      [](const Device& device, StreamAbort kind) { return device.stream_aborts().of(kind); });
}

void AddIdentities(const Scheduler& scheduler, DeviceMetrics& metrics) {
  MetricFamilyBuilder family(
      "opserve_device_info",
      "Identity of a device, with the labels of Ascend's npu-exporter; empty: ACL does not tell.",
      MetricType::Gauge);
  for (const auto& service : scheduler.devices()) {
    const Device& device = service->device();
    family.Add({{"device", DeviceMetrics::Label(*service)},
                {"id", device.identity().physical_id},
                {"pcie_bus_info", device.identity().pci_bus_id},
                {"model_name", device.acl().soc_name()}},
               1);
  }
  metrics.AddFamily(std::move(family));
}

void AddHealth(const Scheduler& scheduler, DeviceMetrics& metrics) {
  // Exactly one state of a device is 1, with drained among the states.
  MetricFamilyBuilder states("opserve_device_state", "1 for the state a device is in.",
                             MetricType::Gauge);
  for (const auto& service : scheduler.devices()) {
    // For the scheduler a drained device still drains; an administrator waits for the difference.
    const bool is_drained = service->is_drained();
    const auto add = [&](absl::string_view name, bool is_in_it) {
      states.Add({{"device", DeviceMetrics::Label(*service)}, {"state", std::string(name)}},
                 is_in_it ? 1 : 0);
    };
    for (int i = 0; i < kDeviceStates; ++i) {
      const auto state = static_cast<DeviceState>(i);
      add(DeviceStateName(state), !is_drained && service->device().state() == state);
    }
    add("drained", is_drained);
  }
  metrics.AddFamily(std::move(states));
  metrics.Add(
      "opserve_device_utilization_ratio",
      "Part of the last 15 seconds in which at least one lane of the device was executing a "
      "request, its copies included; up to the scrape.",
      MetricType::Gauge, [](const DeviceService& s) { return s.utilization(); });
  metrics.Add("opserve_device_memory_total_bytes", "Memory of the device.", MetricType::Gauge,
              [](const DeviceService& s) { return s.device().memory_info().total_bytes; });
  metrics.Add("opserve_device_memory_used_bytes", "Of it, in use by anybody.", MetricType::Gauge,
              [](const DeviceService& s) { return s.device().memory_info().used_bytes; });
}

void AddPlanCaches(const Scheduler& scheduler, const OperatorTable& operators,
                   DeviceMetrics& metrics) {
  using Counters = PlanCacheCounters::Operator;
  const auto add = [&](const char* name, const char* help, MetricType type, auto value) {
    MetricFamilyBuilder family(name, help, type);
    for (const LoadedOperator& op : operators.operators()) {
      // The contract names no device for these families, so devices are summed.
      double sum = 0;
      uint64_t uses = 0;
      for (const auto& service : scheduler.devices()) {
        const Counters& counters = service->plan_counters().of[op.index];
        sum += static_cast<double>(value(counters));
        uses += counters.hits + counters.misses;
      }
      // Most operators are never called.
      if (uses > 0) family.Add({{"operator", op.descriptor->name}}, sum);
    }
    metrics.AddFamily(std::move(family));
  };
  add("opserve_executor_cache_hits_total", "Invocations that needed no stage one.",
      MetricType::Counter, [](const Counters& c) { return c.hits.load(); });
  add("opserve_executor_cache_misses_total", "Invocations for which stage one ran.",
      MetricType::Counter, [](const Counters& c) { return c.misses.load(); });
  add("opserve_executor_cache_evictions_total", "Plans dropped to make room for others.",
      MetricType::Counter, [](const Counters& c) { return c.evictions.load(); });
  add("opserve_executor_cache_uncacheable_total",
      "Misses with an executor that can run only once, so that stage one is never saved.",
      MetricType::Counter, [](const Counters& c) { return c.uncacheable.load(); });
  add("opserve_executor_cache_entries", "Plans kept.", MetricType::Gauge,
      [](const Counters& c) { return c.entries.load(); });
}

void AddCapturedRuns(const Scheduler& scheduler, DeviceMetrics& metrics) {
  metrics.Add(
      "opserve_captured_programs",
      "Captured runs of prepared programs, each to be replayed as one launch; a program has "
      "up to --captures_per_program of them.",
      MetricType::Gauge, [](const DeviceService& s) { return s.captured().runs(); });
  metrics.Add("opserve_captured_bytes",
              "Device memory that captured runs keep between their replays; the first to go back "
              "when memory is short.",
              MetricType::Gauge, [](const DeviceService& s) { return s.captured().bytes(); });
  metrics.Add("opserve_captured_replays_total", "Requests whose program was replayed.",
              MetricType::Counter, [](const DeviceService& s) { return s.captured().replays(); });
  // Captures that went well, less the ends, are the captured runs that there are.
  MetricFamilyBuilder captures(
      "opserve_captures_total",
      "Runs of prepared programs that were captured (captured), or were to be and launched, as "
      "--captured_max_bytes_per_device or the most launches of all captured runs were reached "
      "(full), the tenant had no room for the memory (tenant_full) or ACL refused (failed).",
      MetricType::Counter);
  MetricFamilyBuilder ends(
      "opserve_captures_ended_total",
      "Captured runs that ended, because a resident tensor has other memory (contents), device "
      "memory was short (memory), the prepared program is no more (released), a run failed "
      "(failed) or was cancelled (cancelled), or the device drains (drained) or was reset or "
      "closed (closed).",
      MetricType::Counter);
  for (const auto& service : scheduler.devices()) {
    const CapturedRuns& captured = service->captured();
    const std::string device = DeviceMetrics::Label(*service);
    for (size_t i = 0; i < CapturedRuns::kResults; ++i) {
      captures.Add({{"device", device}, {"result", std::string(kCaptureResults[i])}},
                   static_cast<double>(captured.results(i)));
    }
    for (size_t i = 0; i < CapturedRuns::kEnds; ++i) {
      ends.Add({{"device", device}, {"reason", std::string(kCaptureEnds[i])}},
               static_cast<double>(captured.ends(i)));
    }
  }
  metrics.AddFamily(std::move(captures));
  metrics.AddFamily(std::move(ends));
}

// Of operators that were called or came out wrong: most operators are never called.
void AddOperators(const Scheduler& scheduler, const OperatorTable& operators,
                  DeviceMetrics& metrics) {
  MetricFamilyBuilder family(
      "opserve_operator_unavailable",
      "1: the device computed a golden case of the operator wrong and does not offer it.",
      MetricType::Gauge);
  for (const LoadedOperator& op : operators.operators()) {
    bool is_known = false;
    for (const auto& service : scheduler.devices()) {
      const PlanCacheCounters::Operator& counters = service->plan_counters().of[op.index];
      is_known |=
          counters.hits + counters.misses > 0 || op.offer->IsWrongOn(service->device().id());
    }
    if (!is_known) continue;
    // All devices of a known operator have a sample, so that a 1 goes back to 0 instead of
    // vanishing.
    for (const auto& service : scheduler.devices()) {
      family.Add({{"operator", op.descriptor->name}, {"device", DeviceMetrics::Label(*service)}},
                 op.offer->IsWrongOn(service->device().id()) ? 1 : 0);
    }
  }
  metrics.AddFamily(std::move(family));
}

void AddPacks(const OperatorTable& operators, DeviceMetrics& metrics) {
  // Families without samples would only make scrapes longer.
  if (operators.packs().empty()) return;
  MetricFamilyBuilder served("opserve_operator_pack_operators",
                             "Operators of the pack; 0: the pack was refused.", MetricType::Gauge);
  MetricFamilyBuilder refused("opserve_operator_pack_refused",
                              "1: the pack was refused at the start, and why.", MetricType::Gauge);
  for (const OperatorPack& pack : operators.packs()) {
    served.Add({{"pack", pack.name}},
               pack.is_refused() ? 0 : static_cast<double>(pack.operators.size()));
    if (pack.is_refused()) {
      refused.Add({{"pack", pack.name}, {"reason", std::string(PackRefusalName(pack.refusal))}}, 1);
    }
  }
  metrics.AddFamily(std::move(served));
  metrics.AddFamily(std::move(refused));
}

void AddHostMemory(const PinnedPool& pinned, DeviceMetrics& metrics) {
  const PinnedPool::Statistics pool = pinned.statistics();
  // The pool does not tell nodes apart; the label is the contract's.
  const MetricLabels any_node = {{"numa_node", "any"}};
  metrics.AddOne("opserve_pinned_pool_reserved_bytes",
                 "Page-locked host memory taken from the system.", MetricType::Gauge, any_node,
                 static_cast<double>(pool.reserved_bytes));
  metrics.AddOne("opserve_pinned_pool_allocated_bytes", "Of it, holding results on their way out.",
                 MetricType::Gauge, any_node, static_cast<double>(pool.allocated_bytes));
  metrics.AddOne("opserve_pinned_fallbacks_total",
                 "Results in ordinary memory because the pinned pool was in use.",
                 MetricType::Counter, any_node, static_cast<double>(pool.fallbacks_total));
}

}  // namespace

std::vector<prometheus::MetricFamily> CollectDeviceMetrics(const Scheduler& scheduler,
                                                           const OperatorTable& operators,
                                                           const PinnedPool& pinned) {
  DeviceMetrics metrics(scheduler);
  AddQueues(metrics);
  AddPools(scheduler, metrics);
  AddHealth(scheduler, metrics);
  AddFaults(scheduler, metrics);
  AddIdentities(scheduler, metrics);
  AddPlanCaches(scheduler, operators, metrics);
  AddCapturedRuns(scheduler, metrics);
  AddOperators(scheduler, operators, metrics);
  AddPacks(operators, metrics);
  AddHostMemory(pinned, metrics);
  return metrics.Take();
}

}  // namespace opserve::server
