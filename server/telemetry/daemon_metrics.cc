#include "server/telemetry/daemon_metrics.h"

#include <cstddef>
#include <iterator>
#include <utility>

#include "server/build_commit.h"
#include "server/observability/line_limiter.h"
#include "server/observability/log.h"
#include "server/observability/metrics.h"

namespace opserve::server {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily LeftOutLines() {
  MetricFamilyBuilder left_out("opserve_log_lines_left_out_total",
                               "Lines that the bounds on the log left out, by event (request: "
                               "request_failed, request_slow, request_sampled).",
                               MetricType::Counter);
  // In the order of LimitedEvent.
  for (size_t i = 0; i < std::size(kLimitedEvents); ++i) {
    left_out.Add({{"event", kLimitedEvents[i]}},
                 static_cast<double>(LeftOutLogLines(static_cast<LimitedEvent>(i))));
  }
  return left_out.Build();
}

MetricFamily Reloads(const DaemonSources& sources) {
  return MetricFamilyBuilder("opserve_config_reloads_total",
                             "Reloads of the configuration, by how they ended.",
                             MetricType::Counter)
      .Add({{"result", "success"}}, static_cast<double>(sources.reloads))
      .Add({{"result", "failure"}}, static_cast<double>(sources.failed_reloads))
      .Add({{"result", "would_lose_tenants"}}, static_cast<double>(sources.dangerous_reloads))
      .Build();
}

MetricFamily Build(const AclLibrary& acl) {
  return MetricFamilyBuilder("opserve_build_info", "Running version.", MetricType::Gauge)
      // Labels of one sample with the value 1, to be joined with other families.
      .Add({{"version", OPSERVE_VERSION},
            {"commit", kBuildCommit},
            {"backend", acl.is_host_cann() ? "host-cann" : "cann"},
            {"soc", acl.soc_name()},
            {"runtime_version", acl.version()}},
           1)
      .Build();
}

}  // namespace

std::vector<MetricFamily> CollectDaemonMetrics(const DaemonSources& sources) {
  std::vector<MetricFamily> families;
  const auto add = [&](const char* name, const char* help, MetricType type, double value) {
    families.push_back(MetricFamilyBuilder(name, help, type).Add({}, value).Build());
  };
  add("opserve_log_lines_dropped_total", "Lines of the log that were not read in time.",
      MetricType::Counter, static_cast<double>(DroppedLogLines()));
  add("opserve_log_queued_bytes", "Memory of log lines that wait to be read; at most 4 MiB.",
      MetricType::Gauge, static_cast<double>(QueuedLogBytes()));
  families.push_back(LeftOutLines());
  add("opserve_status_history_bytes", "Memory of the status page's history; at most 4 MiB.",
      MetricType::Gauge, static_cast<double>(sources.history.bytes()));
  add("opserve_status_history_left_out_series",
      "Series for which the status page's history has no room.", MetricType::Gauge,
      static_cast<double>(sources.history.left_out_series()));
  families.push_back(Reloads(sources));
  // Without TLS there is no certificate to expire.
  if (sources.certificate_expiry) {
    families.push_back(
        MetricFamilyBuilder("opserve_tls_certificate_expiry_timestamp_seconds",
                            "When the server's certificate expires.", MetricType::Gauge)
            .Add({{"listener", "tcp"}},
                 static_cast<double>(absl::ToUnixSeconds(*sources.certificate_expiry)))
            .Build());
  }
  families.push_back(Build(sources.acl));
  return families;
}

}  // namespace opserve::server
