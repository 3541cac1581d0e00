#include "server/telemetry/metrics_listener.h"

#include <utility>

#include "prometheus/text_serializer.h"
#include "proto/status/status_macros.h"
#include "server/observability/log.h"
#include "server/telemetry/status_page/status_page.h"

namespace opserve::server {
namespace {

HttpListener::Page ProbePage(std::string path, std::function<absl::Status()> probe) {
  return {.path = std::move(path),
          .content_type = "text/plain; charset=utf-8",
          .content = [probe = std::move(probe)]() -> HttpListener::Content {
            const absl::Status status = probe();
            if (status.ok()) return {200, "ok\n"};
            // Probes look at the code; the line is for people.
            return {503, absl::StrCat(status.message(), "\n")};
          }};
}

HttpListener::Page RunbookPage(const std::string& url) {
  return {.path = "/runbook",
          .content_type = "text/html; charset=utf-8",
          .content = [url]() -> HttpListener::Content {
            // The runbook that the daemon brings along, unless the site has its own.
            if (url.empty()) return {200, std::string(kRunbookPage)};
            return {302, "", url};
          },
          .security_policy = kRunbookPagePolicy};
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsListener>> MetricsListener::Start(
    Listener bound, const std::vector<std::string>& hosts, Sources sources) {
  std::vector<HttpListener::Page> pages;
  pages.push_back({.path = "/",
                   .content_type = "text/html; charset=utf-8",
                   .content =
                       [] {
                         return HttpListener::Content{200, std::string(kStatusPage)};
                       },
                   .security_policy = kStatusPagePolicy});
  pages.push_back(
      {.path = "/metrics",
       .content_type = "text/plain; version=0.0.4; charset=utf-8",
       .content = [collect = std::move(sources.collect)] {
         return HttpListener::Content{200, prometheus::TextSerializer().Serialize(collect())};
       }});
  pages.push_back({.path = "/history",
                   .content_type = "application/json",
                   .content = [history = std::move(sources.history)] {
                     return HttpListener::Content{200, history()};
                   }});
  pages.push_back(RunbookPage(sources.runbook_url));
  pages.push_back(ProbePage("/healthz", std::move(sources.health)));
  // Readiness is a page of its own: a daemon that drains is alive and not ready.
  pages.push_back(ProbePage("/readyz", std::move(sources.readiness)));
  // Programs of other machines have many names for this one, and no list of them would be known.
  const HttpHosts allowed(hosts, /*allows_all=*/!bound.address().is_local());
  if (allowed.allows_all()) {
    LogInfo("metrics_accept_all_hosts", {{"listen", bound.address().ToString()},
                                         {"advice", "name the hosts in --metrics_host"}});
  }
  OPSERVE_ASSIGN_OR_RETURN(auto http,
                           HttpListener::Start(std::move(bound), allowed, std::move(pages)));
  return std::unique_ptr<MetricsListener>(new MetricsListener(std::move(http)));
}

}  // namespace opserve::server
