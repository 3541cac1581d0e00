#include "server/telemetry/tenant_metrics.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/observability/metrics.h"

namespace opserve::server {
namespace {

using prometheus::MetricType;
using Series = TenantSeries::Series;

// Builds families one by one, each with a sample for every tenant that has a series of its own, and
// for "_other".
class TenantMetrics {
 public:
  TenantMetrics(const TenantSeries& tenants, const Scheduler& scheduler)
      : tenants_(tenants), scheduler_(scheduler) {}

  // A family with a sample for each tenant and device, value(Series, DeviceService) each.
  template <typename Value>
  void AddByDevice(const char* name, const char* help, MetricType type, Value value) {
    MetricFamilyBuilder family(name, help, type);
    for (const auto& service : scheduler_.devices()) {
      const std::string device = absl::StrCat(service->device().id());
      for (const Series& tenant : tenants_.tenants()) {
        family.Add({{"tenant", tenant.label}, {"device", device}}, value(tenant, *service));
      }
    }
    families_.push_back(family.Build());
  }

  void AddMemory(const SharedMemoryQuota* shared_memory) {
    MetricFamilyBuilder family("opserve_tenant_memory_bytes",
                               "Memory that tenants' requests, results and resident tensors have.",
                               MetricType::Gauge);
    for (const Series& tenant : tenants_.tenants()) {
      const auto add = [&](const char* kind, double bytes) {
        family.Add({{"tenant", tenant.label}, {"kind", kind}}, bytes);
      };
      double device_bytes = 0;
      for (const auto& service : scheduler_.devices()) {
        device_bytes += Of(tenant, service->queue().tenant_bytes());
      }
      // The contract's names of kinds.
      add("hbm", device_bytes);
      add("pinned", Of(tenant, scheduler_.pinned_zones().tenant_bytes()));
      if (shared_memory != nullptr) add("shm", Of(tenant, shared_memory->tenant_bytes()));
    }
    families_.push_back(family.Build());
  }

  void AddAmounts(const char* name, const char* help, const TenantAmounts& amounts,
                  MetricType type = MetricType::Gauge) {
    MetricFamilyBuilder family(name, help, type);
    for (const Series& tenant : tenants_.tenants()) {
      family.Add({{"tenant", tenant.label}}, Of(tenant, amounts));
    }
    families_.push_back(family.Build());
  }

  void AddDropped() {
    families_.push_back(
        MetricFamilyBuilder(
            "opserve_metrics_series_dropped_total",
            "Tenants that have no series of their own, since there had been "
            "--metrics_max_tenants before them; each counts once, and is in _other.",
            MetricType::Counter)
            .Add({}, static_cast<double>(tenants_.dropped()))
            .Build());
  }

  std::vector<prometheus::MetricFamily> Take() { return std::move(families_); }

  static double Of(const Series& tenant, const TenantAmounts& amounts) {
    return TenantSeries::Sum(tenant, [&](size_t slot) { return amounts.OfSlot(slot); });
  }

 private:
  const TenantSeries& tenants_;
  const Scheduler& scheduler_;
  std::vector<prometheus::MetricFamily> families_;
};

double LagSeconds(const Series& tenant, const DeviceService& service) {
  absl::Duration lag = -absl::InfiniteDuration();
  // Of tenants that are shown together, the one furthest behind.
  for (size_t slot = tenant.begin; slot < tenant.end; ++slot) {
    lag = std::max(lag, service.queue().LagOfSlot(slot));
  }
  return absl::ToDoubleSeconds(lag);
}

}  // namespace

std::vector<prometheus::MetricFamily> CollectTenantMetrics(const TenantSeries& tenants,
                                                           const Scheduler& scheduler,
                                                           const IdempotencyCache& idempotency,
                                                           const SharedMemoryQuota* shared_memory) {
  TenantMetrics metrics(tenants, scheduler);
  metrics.AddByDevice("opserve_queue_depth", "Requests waiting for a lane.", MetricType::Gauge,
                      [](const Series& tenant, const DeviceService& service) {
                        return TenantMetrics::Of(tenant, service.queue().tenant_depths());
                      });
  metrics.AddByDevice("opserve_queue_work_elements",
                      "Elements that the requests waiting for a lane will compute.",
                      MetricType::Gauge, [](const Series& tenant, const DeviceService& service) {
                        return TenantMetrics::Of(tenant, service.queue().tenant_work());
                      });
  metrics.AddByDevice("opserve_tenant_fairness_lag_seconds",
                      "Lane time by which a tenant that waits is behind its share by weight "
                      "among the tenants that wait (negative: ahead); 0 if it does not wait. Taken "
                      "once a second; of _other, that of the tenant furthest behind.",
                      MetricType::Gauge, LagSeconds);
  metrics.AddByDevice(
      "opserve_tenant_device_seconds_total", "Time that tenants' requests had a lane.",
      MetricType::Counter, [](const Series& tenant, const DeviceService& service) {
        return TenantSeries::Sum(
            tenant, [&](size_t slot) { return absl::ToDoubleSeconds(service.TenantTime(slot)); });
      });
  metrics.AddMemory(shared_memory);
  // Without shared memory the families do not appear.
  if (shared_memory != nullptr) {
    metrics.AddAmounts("opserve_shm_regions", "Regions of shared memory, registered or used.",
                       shared_memory->tenant_regions());
    metrics.AddAmounts("opserve_shm_bytes", "Bytes of these regions.",
                       shared_memory->tenant_bytes());
  }
  metrics.AddAmounts("opserve_idempotency_entries", "Answers kept for idempotency keys.",
                     idempotency.entries());
  metrics.AddAmounts("opserve_idempotency_bytes", "Host memory that these answers take.",
                     idempotency.bytes());
  metrics.AddAmounts("opserve_idempotency_evictions_total",
                     "Answers forgotten before their time, to make room for others.",
                     idempotency.evictions(), MetricType::Counter);
  metrics.AddAmounts("opserve_idempotency_unremembered_total",
                     "Requests with an idempotency key and an answer for which there was no room.",
                     idempotency.unremembered(), MetricType::Counter);
  metrics.AddDropped();
  return metrics.Take();
}

}  // namespace opserve::server
