// What a daemon shows over HTTP: /metrics for Prometheus, and / for people, a page that draws
// /metrics.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "prometheus/metric_family.h"
#include "server/observability/http_listener.h"

namespace opserve::server {

class MetricsListener {
 public:
  // Called for every scrape, on a thread of the listener; must not block on requests.
  using Collect = std::function<std::vector<prometheus::MetricFamily>()>;

  // Serves on `address` ("127.0.0.1:9464"; port 0 chooses one). What `collect` uses must outlive
  // the listener. kUnavailable: the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<MetricsListener>> Start(const std::string& address,
                                                                Collect collect);

  int port() const { return http_->port(); }

 private:
  explicit MetricsListener(std::unique_ptr<HttpListener> http) : http_(std::move(http)) {}

  const std::unique_ptr<HttpListener> http_;
};

}  // namespace opserve::server
