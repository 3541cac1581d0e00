#include "server/telemetry/connection_metrics.h"

#include <array>
#include <cstddef>
#include <string>

#include "server/observability/metrics.h"

namespace opserve::server {
namespace {

using prometheus::MetricType;

// In the order of ConnectionSlots::Rank; below, of ConnectionSlots::Limit.
constexpr std::array<const char*, ConnectionSlots::kNumRanks> kStates = {"silent", "answered",
                                                                         "identified"};
constexpr std::array<const char*, ConnectionSlots::kNumLimits> kLimits = {"user", "address",
                                                                          "listener", "total"};

std::vector<prometheus::MetricFamily> ListenerFamilies(
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
  // Every state and reason has its sample from the start, so that the first event shows as an
  // increase.
  for (const auto& [listener, counters] : listeners) {
    for (size_t i = 0; i < kStates.size(); ++i) {
      connections.Add({{"listener", listener}, {"state", kStates[i]}}, counters.now[i].load());
    }
    const auto add = [listener = listener](MetricFamilyBuilder& family, const char* reason,
                                           const std::atomic<uint64_t>& count) {
      family.Add({{"listener", listener}, {"reason", reason}}, static_cast<double>(count.load()));
    };
    // Those that wait have slots as silent ones, and are counted apart.
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

}  // namespace

std::vector<prometheus::MetricFamily> CollectConnectionMetrics(const ConnectionSources& sources) {
  std::vector<prometheus::MetricFamily> families = ListenerFamilies(sources.listeners);
  MetricFamilyBuilder floods("opserve_flooding_connections_total",
                             "Connections ended for their input: header blocks without end "
                             "(headers), calls of no known caller (streams), resets, control "
                             "frames, bytes for such calls (data), no HTTP/2 or TLS (malformed).",
                             MetricType::Counter);
  // The first value is no flood.
  for (size_t i = 1; i < kNumFloods; ++i) {
    const auto flood = static_cast<Flood>(i);
    floods.Add({{"flood", std::string(FloodName(flood))}},
               static_cast<double>(sources.ledger.ended(flood)));
  }
  MetricFamilyBuilder streams("opserve_anonymous_streams",
                              "Health/Watch calls on connections without a call of a tenant.",
                              MetricType::Gauge);
  streams.Add({}, static_cast<double>(sources.health.anonymous_streams()));
  MetricFamilyBuilder ended("opserve_anonymous_streams_ended_total",
                            "Health/Watch calls refused, since their connection had as many as it "
                            "may, or evicted by newer ones.",
                            MetricType::Counter);
  ended.Add({{"result", "refused"}}, static_cast<double>(sources.health.refused_streams()))
      .Add({{"result", "evicted"}}, static_cast<double>(sources.health.evicted_streams()));
  families.push_back(floods.Build());
  families.push_back(streams.Build());
  families.push_back(ended.Build());
  families.push_back(
      MetricFamilyBuilder("opserve_write_stalls_total",
                          "Calls and connections ended because the client took nothing.",
                          MetricType::Counter)
          .Add({{"kind", "call"}}, static_cast<double>(sources.stalled_calls))
          .Add({{"kind", "connection"}}, static_cast<double>(sources.stalled_connections))
          .Build());
  return families;
}

}  // namespace opserve::server
