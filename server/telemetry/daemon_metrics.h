// The metric families of the daemon as a whole: log, status page's history, reloads, certificate
// and version.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "prometheus/metric_family.h"
#include "server/device/acl/acl_library.h"
#include "server/telemetry/status_page/status_history.h"

namespace opserve::server {

struct DaemonSources {
  const AclLibrary& acl;
  const StatusHistory& history;
  // Reloads of the configuration, by how they ended.
  uint64_t reloads = 0;
  uint64_t failed_reloads = 0;
  uint64_t dangerous_reloads = 0;                               // refused: would lose tenants
  std::optional<absl::Time> certificate_expiry = std::nullopt;  // none: there is no TLS listener
};

// Thread-safe.
std::vector<prometheus::MetricFamily> CollectDaemonMetrics(const DaemonSources& sources);

}  // namespace opserve::server
