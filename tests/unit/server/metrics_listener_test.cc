#include "server/telemetry/metrics_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "server/observability/metrics.h"
#include "tests/await.h"

namespace opserve::server {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kExposition[] =
    "# HELP answers_total What was asked.\n"
    "# TYPE answers_total counter\n"
    "answers_total{to=\"all\"} 42\n";

std::vector<prometheus::MetricFamily> OneFamily() {
  return {MetricFamilyBuilder("answers_total", "What was asked.", prometheus::MetricType::Counter)
              .Add({{"to", "all"}}, 42)
              .Build()};
}

MetricsListener::Sources HealthySources() {
  const auto is_well = [] { return absl::OkStatus(); };
  return {.collect = &OneFamily,
          .history = [] { return std::string("{}\n"); },
          .health = is_well,
          .readiness = is_well};
}

ListenAddress Loopback(int port) {
  return {.is_unix = false, .path = "", .host = "127.0.0.1", .port = port};
}

class Connection {
 public:
  Connection(const std::string& host, int port) {
    addrinfo* found = nullptr;
    EXPECT_EQ(getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), nullptr, &found), 0);
    socket_ = socket(found->ai_family, SOCK_STREAM, 0);
    const timeval minute = {.tv_sec = 60, .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof(minute));
    is_connected_ = connect(socket_, found->ai_addr, found->ai_addrlen) == 0;
    freeaddrinfo(found);
  }
  ~Connection() { close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool is_connected() const { return is_connected_; }

  void Send(const std::string& text) {
    EXPECT_EQ(send(socket_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }

  // Waits until the listener has read what was sent: until then a thread of its own may not have
  // the connection, and one that waits for a thread is left open when the listener ends. IPv4 only.
  void AwaitRead() const {
    sockaddr_in own = {};
    sockaddr_in peer = {};
    socklen_t size = sizeof(own);
    getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &size);
    getpeername(socket_, reinterpret_cast<sockaddr*>(&peer), &size);
    // "N: LOCAL:PORT REMOTE:PORT STATE SENT:UNREAD ..."
    const std::string ports = absl::StrFormat(":%04X %08X:%04X 01 ", ntohs(peer.sin_port),
                                              own.sin_addr.s_addr, ntohs(own.sin_port));
    EXPECT_TRUE(Await([&] {
      std::ifstream table("/proc/net/tcp");
      for (std::string line; std::getline(table, line);) {
        const size_t at = line.find(ports);
        if (at == std::string::npos) continue;
        const absl::string_view unread = absl::string_view(line).substr(at + ports.size() + 9, 8);
        if (unread == "00000000") return true;
      }
      return false;
    }));
  }

  std::string ReadToEnd() {
    std::string text;
    char buffer[4096];
    ssize_t n = 0;
    while ((n = read(socket_, buffer, sizeof(buffer))) > 0) text.append(buffer, n);
    EXPECT_FALSE(n < 0 && errno == EAGAIN) << "nothing for a minute, and no end";
    return text;
  }

 private:
  int socket_ = -1;
  bool is_connected_ = false;
};

struct Answer {
  std::string head;
  std::string body;
};

Answer AnswerOf(const std::string& text) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(text, absl::MaxSplits("\r\n\r\n", 1));
  return {parts.first, parts.second};
}

class MetricsListenerTest : public testing::Test {
 protected:
  Answer Ask(const std::string& request_line, const std::string& headers = "") const {
    Connection connection("127.0.0.1", listener_->address().port);
    connection.Send(
        absl::StrCat(request_line, " HTTP/1.1\r\nHost: 127.0.0.1\r\n", headers, "\r\n"));
    return AnswerOf(connection.ReadToEnd());
  }

  static absl::Status StatusIf(bool holds, const char* problem) {
    return holds ? absl::OkStatus() : absl::UnavailableError(problem);
  }

  static constexpr int kHalfRequests = 295;

  std::atomic<bool> is_alive_ = true;
  std::atomic<bool> is_ready_ = false;
  std::unique_ptr<MetricsListener> listener_ = *MetricsListener::Start(
      *Listener::Bind(Loopback(0), /*unix_mode=*/0), {"metrics.test"},
      {.collect = &OneFamily,
       .history = [] { return std::string("{}\n"); },
       .health = [this] { return StatusIf(is_alive_, "it hangs"); },
       .readiness = [this] { return StatusIf(is_ready_, "no device is ready"); }});
};

std::string Decompressed(const std::string& gzip) {
  std::string text(1 << 20, '\0');
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(gzip.data()));
  stream.avail_in = static_cast<uInt>(gzip.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

TEST_F(MetricsListenerTest, ServesItsPagesAndNothingElse) {
  const std::pair<const char*, const char*> kCases[] = {
      {"GET /", "200 OK"},
      {"GET /metrics", "200 OK"},
      {"GET /metrics?name=value", "200 OK"},
      {"HEAD /", "200 OK"},
      {"HEAD /metrics", "200 OK"},
      {"GET /history", "200 OK"},
      {"GET /runbook", "200 OK"},
      {"GET /healthz", "200 OK"},
      {"GET /readyz", "503 Service Unavailable"},
      {"GET /metrics/", "404 Not Found"},
      {"GET /metrics/more", "404 Not Found"},
      {"GET /index.html", "404 Not Found"},
      {"GET /favicon.ico", "404 Not Found"},
      {"GET /../../etc/passwd", "404 Not Found"},
      {"GET /%2e%2e/%2e%2e/etc/passwd", "404 Not Found"},
      {"HEAD /more", "404 Not Found"},
      {"POST /more", "404 Not Found"},
      {"POST /", "405 Method Not Allowed"},
      {"PUT /metrics", "405 Method Not Allowed"},
      {"DELETE /metrics", "405 Method Not Allowed"},
      {"OPTIONS /metrics", "405 Method Not Allowed"},
      {"NONSENSE /", "405 Method Not Allowed"},
  };
  for (const auto& [request, status] : kCases) {
    SCOPED_TRACE(request);
    const Answer answer = Ask(request);
    EXPECT_THAT(answer.head, StartsWith(absl::StrCat("HTTP/1.1 ", status, "\r\n")));
    EXPECT_THAT(answer.head, HasSubstr("\r\nX-Content-Type-Options: nosniff\r\n"));
    EXPECT_THAT(answer.head, HasSubstr("\r\nReferrer-Policy: no-referrer\r\n"));
    EXPECT_THAT(answer.head, HasSubstr("\r\nCache-Control: no-store\r\n"));
    EXPECT_THAT(answer.head, HasSubstr("\r\nContent-Security-Policy: default-src 'none'; "));
    EXPECT_THAT(answer.head, HasSubstr("frame-ancestors 'none'\r\n"));
    EXPECT_THAT(answer.head, Not(HasSubstr("unsafe")));
    EXPECT_EQ(absl::StrContains(answer.head, "\r\nAllow: GET, HEAD\r\n"),
              absl::StartsWith(status, "405"));
    if (absl::StartsWith(request, "HEAD")) {
      EXPECT_THAT(answer.body, IsEmpty());
    } else {
      EXPECT_THAT(answer.head, HasSubstr(absl::StrCat("\r\nContent-Length: ", answer.body.size())));
    }
  }
}

TEST_F(MetricsListenerTest, WhatIsNoRequestIsRefused) {
  for (const char* request : {"GET", "\r\n\r\n", "GET metrics"}) {
    EXPECT_THAT(Ask(request).head, HasSubstr(" 400 Bad Request\r\n")) << request;
  }
  EXPECT_THAT(Ask("GET /", absl::StrCat("Large: ", std::string(20'000, 'x'), "\r\n")).head,
              HasSubstr(" 431 "));
  EXPECT_THAT(Ask("GET /").head, StartsWith("HTTP/1.1 200 "));
}

TEST_F(MetricsListenerTest, MetricsAreForPrometheus) {
  const Answer answer = Ask("GET /metrics");
  EXPECT_THAT(answer.head,
              HasSubstr("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  EXPECT_EQ(answer.body, kExposition);
}

TEST_F(MetricsListenerTest, ThePageIsHtml) {
  const Answer answer = Ask("GET /");
  EXPECT_THAT(answer.head, HasSubstr("\r\nContent-Type: text/html; charset=utf-8\r\n"));
  EXPECT_THAT(answer.body, StartsWith("<!doctype html>\n"));
  EXPECT_THAT(answer.body, EndsWith("</html>\n"));
}

TEST_F(MetricsListenerTest, CompressesForThoseWhoAsk) {
  const std::pair<const char*, bool> kCases[] = {
      {"gzip", true},      {"deflate, GZIP;q=1.0, gzip, br", true},
      {"x-gzip", false},   {"deflate, br", false},
      {"gzip;q=0", false}, {"", false},
  };
  for (const auto& [codings, is_compressed] : kCases) {
    SCOPED_TRACE(codings);
    const Answer answer = Ask("GET /metrics", absl::StrCat("Accept-Encoding: ", codings, "\r\n"));
    EXPECT_EQ(absl::StrContains(answer.head, "\r\nContent-Encoding: gzip\r\n"), is_compressed);
    EXPECT_EQ(is_compressed ? Decompressed(answer.body) : answer.body, kExposition);
  }
}

TEST_F(MetricsListenerTest, SlowClientsKeepNobodyWaiting) {
  std::vector<std::unique_ptr<Connection>> slow;
  for (int i = 0; i < 5; ++i) {
    slow.push_back(std::make_unique<Connection>("127.0.0.1", listener_->address().port));
    slow.push_back(std::make_unique<Connection>("127.0.0.1", listener_->address().port));
    slow.back()->Send("GET /metrics HTTP/1.1\r\nHost:");
  }
  EXPECT_EQ(Ask("GET /metrics").body, kExposition);
  slow.back()->Send(" 127.0.0.1\r\n\r\n");
  EXPECT_EQ(AnswerOf(slow.back()->ReadToEnd()).body, kExposition);
}

// As many half requests as it takes connections, and more, from the address of the client that is
// to be served.
TEST_F(MetricsListenerTest, HalfRequestsKeepNobodyWaiting) {
  std::vector<std::unique_ptr<Connection>> half;
  for (int i = 0; i < kHalfRequests; ++i) {
    half.push_back(std::make_unique<Connection>("127.0.0.1", listener_->address().port));
    half.back()->Send("GET /metrics HTTP/1.1\r\nHost:");
  }
  EXPECT_EQ(Ask("GET /metrics").body, kExposition);
  for (const auto& connection : half) EXPECT_THAT(connection->ReadToEnd(), IsEmpty());
  EXPECT_GT(listener_->connections().evicted.load(), 0u);
  EXPECT_EQ(listener_->connections().evicted.load() + listener_->connections().silent.load(),
            uint64_t{kHalfRequests});
}

TEST_F(MetricsListenerTest, AHeadHasADeadline) {
  Connection half("127.0.0.1", listener_->address().port);
  half.Send("GET /metrics HTTP/1.1\r\nHost:");
  EXPECT_THAT(half.ReadToEnd(), IsEmpty());
  EXPECT_EQ(listener_->connections().silent.load(), 1u);
}

TEST_F(MetricsListenerTest, AnswersWithBodiesAreNotCutOff) {
  // What was not read of the request would have the system reset the connection.
  const Answer answer =
      Ask("POST /", absl::StrCat("Content-Length: 100000\r\n\r\n", std::string(100'000, 'x')));
  EXPECT_THAT(answer.head, StartsWith("HTTP/1.1 405 "));
  EXPECT_EQ(answer.body, "only GET and HEAD\n");
}

TEST_F(MetricsListenerTest, UnknownHostsAreRefused) {
  const auto ask = [&](const char* path, const char* host) {
    Connection connection("127.0.0.1", listener_->address().port);
    connection.Send(absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: ", host, "\r\n\r\n"));
    return AnswerOf(connection.ReadToEnd());
  };
  for (const char* host : {"127.0.0.1:1", "localhost", "metrics.test"}) {
    EXPECT_EQ(ask("/metrics", host).body, kExposition) << host;
  }
  for (const char* path : {"/metrics", "/history", "/runbook", "/healthz", "/readyz"}) {
    const Answer refused = ask(path, "rebound.test");
    EXPECT_THAT(refused.head, StartsWith("HTTP/1.1 403 Forbidden\r\n")) << path;
    EXPECT_THAT(refused.body, HasSubstr("--metrics_host"));
  }
}

TEST_F(MetricsListenerTest, AnswersProbes) {
  EXPECT_THAT(Ask("GET /healthz").head, StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(Ask("GET /healthz").body, "ok\n");
  EXPECT_THAT(Ask("GET /readyz").head, StartsWith("HTTP/1.1 503 "));
  EXPECT_EQ(Ask("GET /readyz").body, "no device is ready\n");
  is_alive_ = false;
  is_ready_ = true;
  EXPECT_THAT(Ask("GET /healthz").head, StartsWith("HTTP/1.1 503 "));
  EXPECT_EQ(Ask("GET /healthz").body, "it hangs\n");
  EXPECT_THAT(Ask("HEAD /readyz").head, StartsWith("HTTP/1.1 200 "));
}

TEST_F(MetricsListenerTest, ProbesAreServedBesideHalfRequests) {
  std::vector<std::unique_ptr<Connection>> half;
  for (int i = 0; i < kHalfRequests; ++i) {
    half.push_back(std::make_unique<Connection>("127.0.0.1", listener_->address().port));
    half.back()->Send("GET /readyz HTTP/1.1\r\nHost:");
  }
  EXPECT_EQ(Ask("GET /healthz").body, "ok\n");
  for (const auto& connection : half) EXPECT_THAT(connection->ReadToEnd(), IsEmpty());
}

TEST_F(MetricsListenerTest, ServesTheHistoryAndTheRunbook) {
  const Answer history = Ask("GET /history");
  EXPECT_THAT(history.head, HasSubstr("\r\nContent-Type: application/json\r\n"));
  EXPECT_EQ(history.body, "{}\n");
  const Answer runbook = Ask("GET /runbook");
  EXPECT_THAT(runbook.head, HasSubstr("\r\nContent-Type: text/html; charset=utf-8\r\n"));
  EXPECT_THAT(runbook.body, StartsWith("<!doctype html>\n"));
  EXPECT_THAT(runbook.body, HasSubstr("<h3 id=\"opservedown\">OpserveDown</h3>"));
}

TEST(MetricsListenerRunbookTest, LeadsWhereTheConfigurationSays) {
  MetricsListener::Sources sources = HealthySources();
  sources.runbook_url = "https://wiki.test/opserve?v=1";
  const auto listener =
      MetricsListener::Start(*Listener::Bind(Loopback(0), /*unix_mode=*/0), {}, std::move(sources));
  Connection connection("127.0.0.1", (*listener)->address().port);
  connection.Send("GET /runbook HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const Answer answer = AnswerOf(connection.ReadToEnd());
  EXPECT_THAT(answer.head, StartsWith("HTTP/1.1 302 Found\r\n"));
  EXPECT_THAT(answer.head, HasSubstr("\r\nLocation: https://wiki.test/opserve?v=1\r\n"));
  EXPECT_THAT(answer.body, IsEmpty());
}

TEST_F(MetricsListenerTest, EndsAlthoughClientsAreConnected) {
  const int port = listener_->address().port;
  Connection silent("127.0.0.1", port);
  silent.Send("GET");  // and no more
  silent.AwaitRead();
  listener_.reset();
  EXPECT_THAT(silent.ReadToEnd(), IsEmpty());
  EXPECT_FALSE(Connection("127.0.0.1", port).is_connected());
}

}  // namespace
}  // namespace opserve::server
