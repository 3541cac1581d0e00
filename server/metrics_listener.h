// What a daemon shows over HTTP: /metrics for Prometheus, / for people, a page that draws /metrics,
// and /healthz and /readyz for probes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "prometheus/metric_family.h"
#include "server/access/http_listener.h"
#include "server/config/listen_address.h"

namespace opserve::server {

class MetricsListener {
 public:
  // Called on the listener's thread, for every request; must not block on requests to the daemon.
  struct Sources {
    std::function<std::vector<prometheus::MetricFamily>()> collect;
    std::function<bool()> is_alive;  // /healthz answers 200, or 503
    std::function<bool()> is_ready;  // /readyz likewise
  };

  // Serves on `bound` to requests that name an address, localhost or one of `hosts`; if there are
  // no `hosts` and other machines can reach the address, to all. What `sources` use must outlive
  // the listener. kResourceExhausted: no more file descriptors.
  static absl::StatusOr<std::unique_ptr<MetricsListener>> Start(
      Listener bound, const std::vector<std::string>& hosts, Sources sources);

  const ListenAddress& address() const { return http_->address(); }
  const ConnectionCounters& connections() const { return http_->connections(); }

 private:
  explicit MetricsListener(std::unique_ptr<HttpListener> http) : http_(std::move(http)) {}

  const std::unique_ptr<HttpListener> http_;
};

}  // namespace opserve::server
