#include "server/observability/metrics_listener.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "prometheus/exposer.h"

namespace opserve::server {
namespace {

class CollectFunction : public prometheus::Collectable {
 public:
  explicit CollectFunction(MetricsListener::Collect collect) : collect_(std::move(collect)) {}
  std::vector<prometheus::MetricFamily> Collect() const override { return collect_(); }

 private:
  const MetricsListener::Collect collect_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsListener>> MetricsListener::Start(const std::string& address,
                                                                        Collect collect) {
  auto listener = std::unique_ptr<MetricsListener>(new MetricsListener());
  listener->collectable_ = std::make_shared<CollectFunction>(std::move(collect));
  try {
    listener->exposer_ = std::make_unique<prometheus::Exposer>(address);
  } catch (const std::exception& error) {  // how civetweb's wrapper reports a bad address
    return absl::UnavailableError(
        absl::StrCat("cannot serve metrics on ", address, ": ", error.what()));
  }
  listener->exposer_->RegisterCollectable(listener->collectable_);
  return listener;
}

MetricsListener::~MetricsListener() = default;

int MetricsListener::port() const { return exposer_->GetListeningPorts().front(); }

}  // namespace opserve::server
