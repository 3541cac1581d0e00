#include "server/telemetry/listener_metrics.h"

#include <array>
#include <cstddef>

#include "server/observability/metrics.h"

namespace opserve::server {
namespace {

using prometheus::MetricType;

constexpr std::array<const char*, ConnectionSlots::kNumRanks> kStates = {"silent", "answered",
                                                                         "identified"};
constexpr std::array<const char*, ConnectionSlots::kNumLimits> kLimits = {"user", "address",
                                                                          "listener", "total"};

}  // namespace

std::vector<prometheus::MetricFamily> CollectListenerMetrics(
    absl::Span<const ListenerConnections> listeners) {
  MetricFamilyBuilder connections(
      "opserve_connections",
      "Connections, by whether a call on them was a tenant's (identified), they only had an answer "
      "that anybody gets (answered), or neither (silent); or they wait for their turn, since their "
      "peer flooded (waiting).",
      MetricType::Gauge);
  MetricFamilyBuilder rejected(
      "opserve_rejected_connections_total",
      "Connections closed as they were made, by the limit that had no room left.",
      MetricType::Counter);
  MetricFamilyBuilder ended(
      "opserve_ended_connections_total",
      "Connections that ended: by the client or for their age (closed), without a call in time "
      "(silent), to make room for another (evicted), likewise while they waited for their turn, "
      "since their peer flooded (waiting), because the client took nothing (stalled).",
      MetricType::Counter);
  MetricFamilyBuilder paced(
      "opserve_paced_connections_total",
      "Connections that entered in their turn, since their user or address had flooded.",
      MetricType::Counter);
  for (const auto& [listener, counters] : listeners) {
    for (size_t i = 0; i < kStates.size(); ++i) {
      connections.Add({{"listener", listener}, {"state", kStates[i]}}, counters.now[i].load());
    }
    const auto add = [listener = listener](MetricFamilyBuilder& family, const char* reason,
                                           const std::atomic<uint64_t>& count) {
      family.Add({{"listener", listener}, {"reason", reason}}, static_cast<double>(count.load()));
    };
    connections.Add({{"listener", listener}, {"state", "waiting"}}, counters.waiting.load());
    paced.Add({{"listener", listener}}, static_cast<double>(counters.paced.load()));
    for (size_t i = 0; i < kLimits.size(); ++i) add(rejected, kLimits[i], counters.refused[i]);
    add(rejected, "descriptors", counters.refused_for_descriptors);
    add(rejected, "pace", counters.refused_for_pace);
    add(ended, "closed", counters.closed);
    add(ended, "silent", counters.silent);
    add(ended, "evicted", counters.evicted);
    add(ended, "stalled", counters.stalled);
    add(ended, "waiting", counters.evicted_waiting);
  }
  return {connections.Build(), rejected.Build(), ended.Build(), paced.Build()};
}

}  // namespace opserve::server
