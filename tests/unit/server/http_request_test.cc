#include "server/telemetry/http/http_request.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/config/dns_name.h"

namespace opserve::server {
namespace {

TEST(HttpRequestTest, ReadsWhatAnswersDependOn) {
  const auto request = ParseHttpRequest(
      "GET /metrics?name=value HTTP/1.1\r\nhost:  Daemon.Test:9464 \r\nAccept-Encoding: br, "
      "GZIP\r\n"
      "Empty:");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->method, "GET");
  EXPECT_EQ(request->path, "/metrics");
  EXPECT_EQ(request->host, "daemon.test");
  EXPECT_TRUE(request->takes_gzip);

  const auto old = ParseHttpRequest("HEAD / HTTP/1.0");
  ASSERT_TRUE(old);
  EXPECT_EQ(old->method, "HEAD");
  EXPECT_EQ(old->host, std::nullopt);
  EXPECT_FALSE(old->takes_gzip);
}

TEST(HttpRequestTest, RefusesWhatServersReadDifferently) {
  for (const char* head : {
           "",
           "GET",
           "GET /",
           "GET / HTTP/1.1",  // no host
           "GET / HTTP/1.1\r\nHost: a\r\nHost: b",
           "GET / HTTP/1.1\r\nHost : a",
           "GET / HTTP/1.1\r\nHost: a\r\n continued",
           "GET / HTTP/1.1\r\nHost: a\r\nno colon",
           "GET / HTTP/1.1\r\nHost: a\r\n: nameless",
           "GET / HTTP/2\r\nHost: a",
           "GET / HTTP/1.1 \r\nHost: a",
           "GET  / HTTP/1.1\r\nHost: a",
           "GET http://a/ HTTP/1.1\r\nHost: a",
           "GET * HTTP/1.1\r\nHost: a",
           "G\tT / HTTP/1.1\r\nHost: a",
           "\r\nGET / HTTP/1.1\r\nHost: a",
       }) {
    EXPECT_FALSE(ParseHttpRequest(head)) << head;
  }
}

TEST(HttpHostsTest, AnAddressCannotBeRebound) {
  const auto host_of = [](const char* header) {
    return ParseHttpRequest(absl::StrCat("GET / HTTP/1.1\r\nHost: ", header))->host;
  };
  struct Case {
    const char* host;
    bool by_default;  // on a loopback listener without names
    bool with_name;   // where "metrics.test" is one
  };
  const HttpHosts loopback({}, /*allows_all=*/false);
  const HttpHosts named({"Metrics.test"}, /*allows_all=*/true);
  const HttpHosts all({}, /*allows_all=*/true);
  for (const Case& c : {
           Case{"127.0.0.1", true, true},
           Case{"127.0.0.1:9464", true, true},
           Case{"[::1]:9464", true, true},
           Case{"localhost:9464", true, true},
           Case{"LOCALHOST.", true, true},
           Case{"192.0.2.7:80", true, true},
           Case{"metrics.test:9464", false, true},
           Case{"METRICS.TEST", false, true},
           Case{"metrics.test.evil.test", false, false},
           Case{"evil.test", false, false},
           Case{"127.0.0.1.evil.test", false, false},
           Case{"localhost.evil.test", false, false},
           Case{"0x7f000001", false, false},
           Case{"", false, false},
       }) {
    EXPECT_EQ(loopback.Allows(host_of(c.host)), c.by_default) << c.host;
    EXPECT_EQ(named.Allows(host_of(c.host)), c.with_name) << c.host;
    EXPECT_TRUE(all.Allows(host_of(c.host))) << c.host;
  }
  EXPECT_TRUE(loopback.Allows(std::nullopt));
  EXPECT_FALSE(named.allows_all());
  EXPECT_TRUE(all.allows_all());
}

TEST(DnsNameTest, TellsNamesFromTheRest) {
  for (const std::string& name : {std::string("a"), std::string("trainer-1.example.com"),
                                  std::string("_x.local"), std::string(63, 'a') + ".test"}) {
    EXPECT_TRUE(IsDnsName(name)) << name;
  }
  for (const std::string& text :
       {std::string(), std::string("a b"), std::string("a..b"), std::string("-a.test"),
        std::string("a-.test"), std::string("a@b.test"), std::string("spiffe://a/b"),
        std::string("Jane Doe"), std::string(64, 'a'), std::string("a:80"), std::string("*.test"),
        std::string("*")}) {
    EXPECT_FALSE(IsDnsName(text)) << text;
  }
  EXPECT_TRUE(IsDnsName("*.test", /*allows_wildcard=*/true));
  EXPECT_FALSE(IsDnsName("*", /*allows_wildcard=*/true));
  EXPECT_FALSE(IsDnsName("a.*.test", /*allows_wildcard=*/true));
}

}  // namespace
}  // namespace opserve::server
