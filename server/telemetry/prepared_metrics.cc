#include "server/telemetry/prepared_metrics.h"

#include <utility>

#include "server/observability/metrics.h"

namespace opserve::server {

using prometheus::MetricType;

std::vector<prometheus::MetricFamily> CollectPreparedMetrics(const PreparedPrograms& programs) {
  const PreparedPrograms::Usage usage = programs.UsageOfAll();
  std::vector<prometheus::MetricFamily> families;
  families.push_back(MetricFamilyBuilder("opserve_prepared_programs",
                                         "Handles of prepared programs.", MetricType::Gauge)
                         .Add({}, usage.handles)
                         .Build());
  families.push_back(MetricFamilyBuilder(
                         "opserve_prepared_program_bytes",
                         "Host memory of prepared programs, with the executors that lanes keep for "
                         "them and their captured runs; callers of a tenant that prepare the "
                         "same program share it.",
                         MetricType::Gauge)
                         .Add({}, static_cast<double>(usage.bytes))
                         .Build());
  MetricFamilyBuilder events(
      "opserve_prepared_program_events_total",
      "Handles of prepared programs that were made, for a new program (prepared) or an equal one "
      "that was there (shared), that came from another daemon (adopted), that ended because the "
      "caller gave them up (released), their lease "
      "ended (expired) or the tenant's limit was reached (evicted), and calls that named a handle "
      "that is not known (unknown).",
      MetricType::Counter);
  for (const auto& [name, event] : {std::pair("prepared", PreparedPrograms::kPrepared),
                                    std::pair("shared", PreparedPrograms::kShared),
                                    std::pair("adopted", PreparedPrograms::kAdopted),
                                    std::pair("released", PreparedPrograms::kReleased),
                                    std::pair("expired", PreparedPrograms::kExpired),
                                    std::pair("evicted", PreparedPrograms::kEvicted),
                                    std::pair("unknown", PreparedPrograms::kUnknown)}) {
    events.Add({{"event", name}}, static_cast<double>(programs.count(event)));
  }
  families.push_back(events.Build());
  return families;
}

std::vector<prometheus::MetricFamily> CollectBoundMetrics(const KnownRequestCounters& counters) {
  std::vector<prometheus::MetricFamily> families;
  families.push_back(
      MetricFamilyBuilder("opserve_bound_programs",
                          "Programs of recent requests that are kept, at most 32 by each thread "
                          "that takes requests.",
                          MetricType::Gauge)
          .Add({}, static_cast<double>(counters.programs.load(std::memory_order_relaxed)))
          .Build());
  families.push_back(
      MetricFamilyBuilder("opserve_bound_program_requests_total",
                          "Requests whose program was kept from an equal one (hit), or is from now "
                          "on (miss).",
                          MetricType::Counter)
          .Add({{"result", "hit"}},
               static_cast<double>(counters.hits.load(std::memory_order_relaxed)))
          .Add({{"result", "miss"}},
               static_cast<double>(counters.misses.load(std::memory_order_relaxed)))
          .Build());
  return families;
}

}  // namespace opserve::server
