// The metrics endpoint: /metrics over HTTP, on a listener of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

namespace prometheus {
class Exposer;
}

namespace opserve::server {

class MetricsListener {
 public:
  // Called for every scrape, on a thread of the listener; must not block on requests.
  using Collect = std::function<std::vector<prometheus::MetricFamily>()>;

  // Serves on `address` ("127.0.0.1:9464"; port 0 chooses one). What `collect` uses must outlive
  // the listener. kUnavailable: the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<MetricsListener>> Start(const std::string& address,
                                                                Collect collect);
  ~MetricsListener();

  int port() const;

 private:
  MetricsListener() = default;

  std::shared_ptr<prometheus::Collectable> collectable_;
  std::unique_ptr<prometheus::Exposer> exposer_;  // ends before what it collects from
};

}  // namespace opserve::server
