// Heads of HTTP/1 requests, and the hosts that they may name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace opserve::server {

struct HttpRequest {
  std::string method;
  std::string path;                 // as sent, without the query
  std::optional<std::string> host;  // without the port, in lower case; [::1] without its brackets
  bool takes_gzip = false;
};

// Parses the text before the empty line. None: it is no request of HTTP/1.0 or 1.1, or one of 1.1
// that does not name exactly one host.
std::optional<HttpRequest> ParseHttpRequest(absl::string_view head);

// Which hosts requests may name. A web site can give its own name this machine's address (DNS
// rebinding); a browser would then let the site's scripts read the pages. An address cannot be
// rebound, so addresses are always allowed, and so is localhost.
class HttpHosts {
 public:
  // `names`: allowed beside addresses. `allows_all`: any name is, as long as there are no `names`.
  HttpHosts(const std::vector<std::string>& names, bool allows_all);

  // A request without a host comes from no browser.
  bool Allows(const std::optional<std::string>& host) const;
  bool allows_all() const { return allows_all_; }

 private:
  std::vector<std::string> names_;
  bool allows_all_;
};

}  // namespace opserve::server
