// A daemon behind TLS: whose certificates it takes, and what happens when they change.

#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/net/tls_files.h"
#include "tests/await.h"
#include "tests/integration/certificates.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/requests.h"

namespace opserve::server {
namespace {

using ::testing::HasSubstr;

// No file of the process grows beyond `bytes` while it lives, those in memory included.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_ = {};
  sighandler_t handler_;
};

// The contents of the files in memory that gRPC reads.
std::multiset<std::string> MemoryFiles() {
  std::multiset<std::string> contents;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    if (!absl::StrContains(std::filesystem::read_symlink(entry, ignored).string(), "opserve-tls")) {
      continue;
    }
    std::ifstream file(entry.path());
    contents.emplace(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return contents;
}

constexpr size_t kMostBytes = 32 << 10;

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
  EXPECT_TRUE(Await([&] { return !CallAs(daemon, "client").ok(); }));
  EXPECT_EQ(CallAs(daemon, "client").code(), absl::StatusCode::kUnavailable);
}

// Authorities check each kind of name in its own way, and the common name often not at all.
TEST_F(AccessTlsTest, NamesOfOtherKindsAreOtherNames) {
  certificates_.WriteRevocations("");
  struct Case {
    const char* common_name;
    const char* alternative_names;
    bool is_known;
  };
  const Case kCases[] = {
      {"one", "DNS:Client.test", true},
      {"client.test", "", true},
      {"client.test", "DNS:other.test", false},
      {"client.test", "email:someone@other.test", false},
      {"two", "URI:client.test", false},
      {"three", "email:client.test", false},
      {"four", "URI:spiffe://client.test/trainer", true},
      {"five", "DNS:spiffe.test,URI:spiffe://client.test/other", false},
      {"six", "email:trainer@client.test", true},
      {"seven", "IP:192.0.2.7", true},
      {"192.0.2.7", "", false},
      {"trainer@client.test", "", false},
  };
  Config config = WithTls(/*is_mutual=*/true);
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "tenant { name: 'dns' certificate_name: 'client.test' }"
      "tenant { name: 'uri' certificate_name: 'uri:spiffe://client.test/trainer' }"
      "tenant { name: 'email' certificate_name: 'email:trainer@client.test' }"
      "tenant { name: 'ip' certificate_name: 'ip:192.0.2.7' }",
      &config.values));
  config.tenants = *TenantsFrom(config.values);
  const InProcessDaemon daemon(config);
  for (const Case& c : kCases) {
    SCOPED_TRACE(absl::StrCat(c.common_name, " ", c.alternative_names));
    certificates_.Sign(c.common_name, "ca", 2, c.alternative_names);
    const absl::Status status = CallAs(daemon, c.common_name);
    EXPECT_EQ(status.code(),
              c.is_known ? absl::StatusCode::kOk : absl::StatusCode::kUnauthenticated)
        << status;
  }
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
  EXPECT_TRUE(Await([&] {
    EXPECT_EQ(CallAs(daemon, ""), absl::OkStatus());
    return daemon.daemon().tls()->expiry() != before;
  }));
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
  EXPECT_TRUE(Await([&] { return daemon.daemon().tls()->failures() > 0; }));
  EXPECT_EQ(CallAs(daemon, ""), absl::OkStatus());
}

TEST_F(AccessTlsTest, FilesForWhichThereIsNoMemoryAreNotUsedInPart) {
  certificates_.WriteRevocations("");
  certificates_.Sign("renewed", "ca", 3, "DNS:daemon.test,IP:127.0.0.1");
  TlsFilesConfig config = *WithTls(/*is_mutual=*/true).tls;
  config.reload_interval = absl::Hours(1);
  const auto files = TlsFiles::Open(config);
  ASSERT_TRUE(files.ok()) << files.status();
  const std::multiset<std::string> before = MemoryFiles();
  EXPECT_EQ(before.size(), 2);
  const absl::Time expiry = (*files)->expiry();

  certificates_.Replace("server", "renewed");
  std::ofstream(config.client_ca, std::ios::app) << std::string(kMostBytes, '\n');
  {
    const FileSizeLimit limit(kMostBytes);
    EXPECT_EQ((*files)->Reload().code(), absl::StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(MemoryFiles(), before);
  EXPECT_EQ((*files)->expiry(), expiry);

  EXPECT_EQ((*files)->Reload(), absl::OkStatus());
  EXPECT_NE(MemoryFiles(), before);
  EXPECT_EQ(MemoryFiles().size(), 2);
  EXPECT_NE((*files)->expiry(), expiry);
}

// The tenants come after the TLS files in a reload, and are checked before them.
TEST_F(AccessTlsTest, AReloadThatTheTenantsRefuseUsesNoNewFiles) {
  certificates_.Sign("renewed", "ca", 3, "DNS:daemon.test,IP:127.0.0.1");
  Config config = WithTls(/*is_mutual=*/false);
  config.tls->reload_interval = absl::Hours(1);
  InProcessDaemon daemon(config);
  const absl::Time expiry = daemon.daemon().tls()->expiry();
  certificates_.Replace("server", "renewed");

  // More than there may ever be.
  Config refused = config;
  for (int i = 0; i < 30000; ++i) {
    refused.tenants.tenants.emplace_back().name = absl::StrCat("t", i);
  }
  EXPECT_EQ(daemon.daemon().Reload(refused).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(daemon.daemon().tls()->expiry(), expiry);

  const auto changes = daemon.daemon().Reload(config);
  EXPECT_TRUE(changes.ok()) << changes.status();
  EXPECT_NE(daemon.daemon().tls()->expiry(), expiry);
}

}  // namespace
}  // namespace opserve::server
