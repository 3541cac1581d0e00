// Pages to read over HTTP, on a listener of their own.
//
// GET and HEAD of exact paths; 404 and 405 for everything else. Nothing that clients do is kept,
// and no answer depends on anything of a request but method, path and Accept-Encoding: the Host
// header is not looked at either. (A web site that gives its name this listener's address, DNS
// rebinding, can have a browser read the pages. They must have no secrets and change nothing;
// whoever may not know them is to be kept from the address. To insist on certain hosts would refuse
// scrapes by name.)
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

struct mg_connection;
struct mg_context;

namespace opserve::server {

// Thread-safe.
class HttpListener {
 public:
  struct Page {
    std::string path;
    std::string content_type;
    std::function<std::string()> body;  // called for each request, on a thread of the listener
    // Content-Security-Policy; what is no HTML needs nothing.
    std::string security_policy = "default-src 'none'; frame-ancestors 'none'";
  };

  // Serves `pages` on `address` ("127.0.0.1:9464"; port 0 chooses one). What their functions use
  // must outlive the listener. kUnavailable: the address cannot be bound (one of IPv6 neither,
  // since Debian's civetweb does not know it).
  static absl::StatusOr<std::unique_ptr<HttpListener>> Start(const std::string& address,
                                                             std::vector<Page> pages);
  // Waits for answers that are being sent, for at most a few seconds.
  ~HttpListener();

  int port() const;

 private:
  HttpListener(const std::string& address, std::vector<Page> pages);

  static int Answer(mg_connection* connection);

  const std::string host_;
  const std::vector<Page> pages_;
  mg_context* context_ = nullptr;
};

}  // namespace opserve::server
