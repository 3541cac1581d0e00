// A daemon behind TLS: whose certificates it takes, and what happens when they change.

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "client/cpp/client.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/integration/certificates.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/requests.h"

namespace opserve::server {
namespace {

using ::testing::HasSubstr;

class AccessTlsTest : public ::testing::Test {
 protected:
  Config WithTls(bool is_mutual) const {
    Config config = InProcessDaemon::DefaultConfig();
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "tenant { name: 'a' certificate_name: 'client.test' }", &config.values));
    if (is_mutual) config.tenants = *TenantsFrom(config.values);
    config.listen.push_back({.is_unix = false, .path = "", .host = "127.0.0.1", .port = 0});
    config.tls = TlsFilesConfig{.cert = certificates_.File("server"),
                                .key = certificates_.Key("server"),
                                .client_ca = is_mutual ? certificates_.File("ca") : "",
                                .crl = is_mutual ? certificates_.File("crl") : "",
                                .reload_interval = absl::Milliseconds(100)};
    return config;
  }

  // `name`: the client's certificate; empty: none.
  absl::StatusOr<std::unique_ptr<Client>> ConnectAs(const InProcessDaemon& daemon,
                                                    const std::string& name) const {
    TlsOptions tls{.ca_file = certificates_.File("ca")};
    if (!name.empty()) {
      tls.cert_file = certificates_.File(name);
      tls.key_file = certificates_.Key(name);
    }
    return Client::Connect(daemon.daemon().addresses()[1],
                           {.tls = tls, .retry = {.max_attempts = 1}});
  }
  absl::Status CallAs(const InProcessDaemon& daemon, const std::string& name) const {
    return (*ConnectAs(daemon, name))->Execute(OnesRequest(10)).status();
  }

  const Certificates certificates_;
};

TEST_F(AccessTlsTest, AnybodyWhoTrustsItMayCallADaemonWithoutTenants) {
  const InProcessDaemon daemon(WithTls(/*is_mutual=*/false));
  EXPECT_EQ(CallAs(daemon, ""), absl::OkStatus());
  const auto plain =
      *Client::Connect(daemon.daemon().addresses()[1], {.retry = {.max_attempts = 1}});
  EXPECT_EQ(plain->GetServerStatus().status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(AccessTlsTest, ACertificateTellsTheTenantUntilItIsRevoked) {
  certificates_.WriteRevocations("");
  certificates_.Sign("unknown", "ca", 2, "DNS:unknown.test");
  const InProcessDaemon daemon(WithTls(/*is_mutual=*/true));
  EXPECT_EQ(CallAs(daemon, "client"), absl::OkStatus());
  EXPECT_EQ(CallAs(daemon, "unknown").code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(CallAs(daemon, "stranger").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(CallAs(daemon, "").code(), absl::StatusCode::kUnavailable);

  certificates_.WriteRevocations("client");
  while (CallAs(daemon, "client").ok()) {
  }
  EXPECT_EQ(CallAs(daemon, "client").code(), absl::StatusCode::kUnavailable);
}

TEST_F(AccessTlsTest, ANewCertificateIsUsedWithoutLosingACall) {
  certificates_.Sign("renewed", "ca", 3, "DNS:daemon.test,IP:127.0.0.1");
  InProcessDaemon daemon(WithTls(/*is_mutual=*/false));
  std::atomic<bool> is_over = false;
  std::atomic<int> failures = 0;
  std::thread load([&] {
    while (!is_over) {
      const auto client = *ConnectAs(daemon, "");
      for (int i = 0; i < 3; ++i) {
        if (!client->Execute(OnesRequest(10)).ok()) ++failures;
      }
    }
  });
  const absl::Time before = daemon.daemon().tls()->expiry();
  certificates_.Replace("server", "renewed");
  while (daemon.daemon().tls()->expiry() == before) {
    ASSERT_TRUE(CallAs(daemon, "").ok());
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(CallAs(daemon, ""), absl::OkStatus());
  is_over = true;
  load.join();
  EXPECT_EQ(failures, 0);
}

TEST_F(AccessTlsTest, BrokenFilesKeepTheOldOnesInUse) {
  const TlsFilesConfig files = *WithTls(/*is_mutual=*/false).tls;
  struct Case {
    const char* cert;
    const char* key;
    const char* why;
  };
  for (const Case& c :
       {Case{"server", "client", "not the key of"}, Case{"expired", "expired", "expired at"},
        Case{"nothing", "server", "No such file"}}) {
    TlsFilesConfig broken = files;
    broken.cert = certificates_.File(c.cert);
    broken.key = certificates_.Key(c.key);
    const absl::Status status = TlsFiles::Open(broken).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.why));
  }
  InProcessDaemon daemon(WithTls(/*is_mutual=*/false));
  certificates_.Replace("server", "expired");
  while (daemon.daemon().tls()->failures() == 0) {
  }
  EXPECT_EQ(CallAs(daemon, ""), absl::OkStatus());
}

}  // namespace
}  // namespace opserve::server
