#include "server/observability/http_listener.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "civetweb.h"
#include "server/observability/gzip.h"

namespace opserve::server {
namespace {

// A thread has one connection at a time, and each connection is one request: a client that is
// silent or reads slowly holds a thread for as long as the timeout, once. So it takes as many of
// them as there are threads, again and again, to keep others waiting, and nothing here can grow.
constexpr const char* kThreads = "16";
constexpr const char* kWaitingConnections = "64";
constexpr const char* kTimeoutMilliseconds = "5000";
constexpr const char* kMaxRequestHeadBytes = "16384";

// What went wrong while this thread starts a listener, in civetweb's words.
thread_local std::string* start_error = nullptr;

int TakeMessage(const mg_connection*, const char* message) {
  if (start_error != nullptr && start_error->empty()) *start_error = message;
  return 1;  // nothing is to be logged: what goes wrong later is one client's concern
}

bool TakesGzip(mg_connection* connection) {
  const char* header = mg_get_header(connection, "Accept-Encoding");
  if (header == nullptr) return false;
  // With a weight it is left out: not to compress is always right.
  const std::vector<std::string> codings = absl::StrSplit(header, ',');
  return std::any_of(codings.begin(), codings.end(), [](const std::string& coding) {
    return absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(coding), "gzip");
  });
}

struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string security_policy = HttpListener::Page().security_policy;
  std::string body;
};

void Send(mg_connection* connection, Response response, bool has_body) {
  const auto add = [connection](const char* name, const std::string& value) {
    mg_response_header_add(connection, name, value.data(), static_cast<int>(value.size()));
  };
  mg_response_header_start(connection, response.status);
  add("Content-Type", response.content_type);
  add("Content-Security-Policy", response.security_policy);
  add("X-Content-Type-Options", "nosniff");
  add("Referrer-Policy", "no-referrer");
  add("Cache-Control", "no-store");
  if (response.status == 405) add("Allow", "GET, HEAD");
  if (TakesGzip(connection)) {
    response.body = Gzip(response.body);
    add("Content-Encoding", "gzip");
  }
  add("Content-Length", absl::StrCat(response.body.size()));
  mg_response_header_send(connection);
  if (has_body) mg_write(connection, response.body.data(), response.body.size());
}

}  // namespace

HttpListener::HttpListener(const std::string& address, std::vector<Page> pages)
    : host_(address.substr(0, address.rfind(':'))), pages_(std::move(pages)) {}

absl::StatusOr<std::unique_ptr<HttpListener>> HttpListener::Start(const std::string& address,
                                                                  std::vector<Page> pages) {
  auto listener = std::unique_ptr<HttpListener>(new HttpListener(address, std::move(pages)));
  mg_callbacks callbacks = {};
  callbacks.begin_request = &HttpListener::Answer;
  callbacks.log_message = &TakeMessage;
  const char* options[] = {"listening_ports",
                           address.c_str(),
                           "num_threads",
                           kThreads,
                           "connection_queue",
                           kWaitingConnections,
                           "request_timeout_ms",
                           kTimeoutMilliseconds,
                           "max_request_size",
                           kMaxRequestHeadBytes,
                           nullptr};
  std::string error;
  start_error = &error;
  listener->context_ = mg_start(&callbacks, listener.get(), options);
  start_error = nullptr;
  if (listener->context_ == nullptr) return absl::UnavailableError(error);
  return listener;
}

HttpListener::~HttpListener() {
  if (context_ == nullptr) return;
  // civetweb looks whether it is to end when somebody connects, otherwise every two seconds.
  const int port = this->port();
  absl::Notification stopped;
  std::thread stopping([this, &stopped] {
    mg_stop(context_);
    stopped.Notify();
  });
  while (!stopped.WaitForNotificationWithTimeout(absl::Milliseconds(10))) {
    char error[64];
    mg_connection* wake = mg_connect_client(host_.c_str(), port, 0, error, sizeof(error));
    if (wake != nullptr) mg_close_connection(wake);
  }
  stopping.join();
}

int HttpListener::port() const {
  mg_server_port port = {};
  mg_get_server_ports(context_, 1, &port);
  return port.port;
}

int HttpListener::Answer(mg_connection* connection) {
  const mg_request_info& request = *mg_get_request_info(connection);
  const auto& listener = *static_cast<HttpListener*>(request.user_data);
  const absl::string_view path = request.local_uri == nullptr ? "" : request.local_uri;
  const absl::string_view method = request.request_method;
  const auto page = std::find_if(listener.pages_.begin(), listener.pages_.end(),
                                 [path](const Page& p) { return p.path == path; });
  Response response;
  if (page == listener.pages_.end()) {
    response.status = 404;
    response.body = "not found\n";
  } else if (method != "GET" && method != "HEAD") {
    response.status = 405;
    response.body = "only GET and HEAD\n";
  } else {
    response.content_type = page->content_type;
    response.security_policy = page->security_policy;
    response.body = page->body();
  }
  const int status = response.status;
  Send(connection, std::move(response), method != "HEAD");
  return status;
}

}  // namespace opserve::server
