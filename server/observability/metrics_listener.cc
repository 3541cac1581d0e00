#include "server/observability/metrics_listener.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "prometheus/text_serializer.h"
#include "server/observability/status_page/status_page.h"

namespace opserve::server {

absl::StatusOr<std::unique_ptr<MetricsListener>> MetricsListener::Start(const std::string& address,
                                                                        Collect collect) {
  auto http =
      HttpListener::Start(address, {{.path = "/",
                                     .content_type = "text/html; charset=utf-8",
                                     .body = [] { return std::string(kStatusPage); },
                                     .security_policy = kStatusPagePolicy},
                                    {.path = "/metrics",
                                     .content_type = "text/plain; version=0.0.4; charset=utf-8",
                                     .body = [collect = std::move(collect)] {
                                       return prometheus::TextSerializer().Serialize(collect());
                                     }}});
  if (!http.ok()) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve metrics on ", address, ": ", http.status().message()));
  }
  return std::unique_ptr<MetricsListener>(new MetricsListener(*std::move(http)));
}

}  // namespace opserve::server
