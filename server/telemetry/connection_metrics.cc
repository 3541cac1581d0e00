#include "server/telemetry/connection_metrics.h"

#include <string>

#include "server/observability/metrics.h"

namespace opserve::server {

std::vector<prometheus::MetricFamily> CollectConnectionMetrics(const ConnectionLedger& ledger,
                                                               const HealthService& health) {
  MetricFamilyBuilder floods("opserve_flooding_connections_total",
                             "Connections ended for their input: header blocks without end "
                             "(headers), calls of no known caller (streams), resets, control "
                             "frames, bytes for such calls (data), no HTTP/2 or TLS (malformed).",
                             prometheus::MetricType::Counter);
  for (size_t i = 1; i < kNumFloods; ++i) {
    const auto flood = static_cast<Flood>(i);
    floods.Add({{"flood", std::string(FloodName(flood))}},
               static_cast<double>(ledger.ended(flood)));
  }
  MetricFamilyBuilder streams("opserve_anonymous_streams",
                              "Health/Watch calls on connections without a call of a tenant.",
                              prometheus::MetricType::Gauge);
  streams.Add({}, static_cast<double>(health.anonymous_streams()));
  MetricFamilyBuilder ended("opserve_anonymous_streams_ended_total",
                            "Health/Watch calls refused, since their connection had as many as it "
                            "may, or evicted by newer ones.",
                            prometheus::MetricType::Counter);
  ended.Add({{"result", "refused"}}, static_cast<double>(health.refused_streams()))
      .Add({{"result", "evicted"}}, static_cast<double>(health.evicted_streams()));
  return {floods.Build(), streams.Build(), ended.Build()};
}

}  // namespace opserve::server
