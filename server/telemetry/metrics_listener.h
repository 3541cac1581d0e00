// The daemon's pages over HTTP: /metrics for Prometheus; / for people, a page that draws /metrics
// and /history; /runbook for readers that an alert has woken; /healthz and /readyz for probes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "prometheus/metric_family.h"
#include "server/config/listen_address.h"
#include "server/telemetry/http/http_listener.h"

namespace opserve::server {

class MetricsListener {
 public:
  // Called on the listener's thread, for every request; must not block on requests to the daemon.
  struct Sources {
    std::function<std::vector<prometheus::MetricFamily>()> collect;
    std::function<std::string()> history;  // StatusHistory::ToJson
    // An error is answered with 503 and its message, a line.
    std::function<absl::Status()> health;     // /healthz
    std::function<absl::Status()> readiness;  // /readyz
    // Where /runbook leads; empty: the listener shows the runbook itself.
    std::string runbook_url = {};
  };

  // Serves on `bound` to requests that name an address, localhost or one of `hosts`; if there are
  // no `hosts` and other machines can reach the address, to all. Objects that `sources` use must
  // outlive the listener. kResourceExhausted: no more file descriptors.
  static absl::StatusOr<std::unique_ptr<MetricsListener>> Start(
      Listener bound, const std::vector<std::string>& hosts, Sources sources);

  const ListenAddress& address() const { return http_->address(); }
  const ConnectionCounters& connections() const { return http_->connections(); }

 private:
  explicit MetricsListener(std::unique_ptr<HttpListener> http) : http_(std::move(http)) {}

  const std::unique_ptr<HttpListener> http_;
};

}  // namespace opserve::server
