// Encrypted connections, with certificates made for the occasion.

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/integration/certificates.h"
#include "tests/integration/scripted_server.h"
#include "tests/unit/client/test_server.h"

namespace opserve {
namespace {

using testing::HasSubstr;

class TlsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { certificates_ = new Certificates(); }
  static void TearDownTestSuite() { delete certificates_; }

  static TlsOptions TrustIn(const std::string& authority) {
    return {.ca_file = certificates_->File(authority)};
  }

  static TlsOptions As(const std::string& name) {
    return {.ca_file = certificates_->File("ca"),
            .cert_file = certificates_->File(name),
            .key_file = certificates_->Key(name)};
  }

  static absl::Status Call(const std::string& target, const ConnectOptions& options) {
    const auto client = Client::Connect(target, options);
    return client.ok() ? (*client)->GetServerStatus().status() : client.status();
  }

  static void ExpectRefusal(const absl::Status& status, const char* why) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }

  static Certificates* certificates_;
};

Certificates* TlsTest::certificates_ = nullptr;

TEST_F(TlsTest, ATrustedDaemonIsCalledAndGetsTheToken) {
  ScriptedServer server("127.0.0.1:0", certificates_->ServerCredentials("server"));
  std::string authorization;
  server.set_script([&authorization](int, grpc::ServerContext* context) {
    const auto found = context->client_metadata().find("authorization");
    if (found != context->client_metadata().end()) {
      authorization.assign(found->second.data(), found->second.size());
    }
    return grpc::Status::OK;
  });

  EXPECT_EQ(Call(server.target(), {.tls = TrustIn("ca"), .token = "s3cret"}), absl::OkStatus());
  EXPECT_EQ(authorization, "Bearer s3cret");
}

TEST_F(TlsTest, WhoCannotProveToBeTheDaemonIsRefused) {
  struct Case {
    const char* certificate;
    const char* why;
  };
  for (const Case& c :
       {Case{"expired", "certificate verify failed"}, Case{"foreign", "certificate verify failed"},
        Case{"elsewhere", "Hostname Verification Check failed"}}) {
    ScriptedServer server("127.0.0.1:0", certificates_->ServerCredentials(c.certificate));
    ExpectRefusal(Call(server.target(), {.tls = TrustIn("ca")}), c.why);
    EXPECT_EQ(server.num_calls(), 0);
  }
}

TEST_F(TlsTest, TheSystemDoesNotTrustWhatAnyoneSigned) {
  ScriptedServer server("127.0.0.1:0", certificates_->ServerCredentials("server"));
  ExpectRefusal(Call(server.target(), {.tls = TlsOptions()}), "certificate verify failed");
}

TEST_F(TlsTest, TheExpectedNameCanBeTold) {
  ScriptedServer server("127.0.0.1:0", certificates_->ServerCredentials("elsewhere"));
  TlsOptions tls = TrustIn("ca");
  tls.server_name_override = "elsewhere.test";
  EXPECT_EQ(Call(server.target(), {.tls = tls}), absl::OkStatus());
  tls.server_name_override = "daemon.test";
  ExpectRefusal(Call(server.target(), {.tls = tls}), "Hostname Verification Check failed");
}

TEST_F(TlsTest, AListNeedsAName) {
  ScriptedServer a("127.0.0.1:0", certificates_->ServerCredentials("server"));
  ScriptedServer b("127.0.0.1:0", certificates_->ServerCredentials("server"));
  const std::string targets = absl::StrCat(a.target(), ",", b.target());
  TlsOptions tls = TrustIn("ca");

  const absl::Status refusal = Call(targets, {.tls = tls});
  EXPECT_EQ(refusal.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refusal.message()), HasSubstr("needs the server name"));

  tls.server_name_override = "daemon.test";
  const auto client = *Client::Connect(targets, {.tls = tls});
  EXPECT_TRUE(Await([&] {
    EXPECT_EQ(client->GetServerStatus().status(), absl::OkStatus());
    return a.num_calls() > 0 && b.num_calls() > 0;
  }));
}

TEST_F(TlsTest, ADaemonMayAskForACertificate) {
  ScriptedServer server("127.0.0.1:0", certificates_->ServerCredentials("server", true));

  EXPECT_EQ(Call(server.target(), {.tls = As("client")}), absl::OkStatus());
  for (const TlsOptions& tls : {As("stranger"), TrustIn("ca")}) {
    const absl::Status status = Call(server.target(), {.tls = tls});
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_FALSE(status.message().empty());
  }
  EXPECT_EQ(server.num_calls(), 1);
}

TEST_F(TlsTest, OneSideAloneDoesNotEncrypt) {
  ScriptedServer encrypted("127.0.0.1:0", certificates_->ServerCredentials("server"));
  ScriptedServer plain;

  EXPECT_EQ(Call(encrypted.target(), {}).code(), absl::StatusCode::kUnavailable);
  ExpectRefusal(Call(plain.target(), {.tls = TrustIn("ca")}), "andshake");
}

TEST_F(TlsTest, RenewedCertificatesAreTaken) {
  ScriptedServer server("127.0.0.1:0", certificates_->ServerCredentials("server"));
  const TemporaryDirectory directory;
  const std::string ca_file = directory.File("ca.pem");
  std::filesystem::copy(certificates_->File("other_ca"), ca_file);
  const auto client = *Client::Connect(server.target(), {.tls = TlsOptions{.ca_file = ca_file}});
  ExpectRefusal(client->GetServerStatus().status(), "certificate verify failed");

  std::filesystem::copy(certificates_->File("ca"), directory.File("renewed"));
  std::filesystem::rename(directory.File("renewed"), ca_file);

  EXPECT_TRUE(Await([&] { return client->GetServerStatus().ok(); }));
}

TEST_F(TlsTest, FilesAreChecked) {
  const TemporaryDirectory directory;
  const std::string missing = directory.File("missing");
  const std::string empty = directory.File("empty");
  const std::string ca = certificates_->File("ca");
  const std::string other = directory.File("other");
  const std::string broken = directory.File("broken");
  std::ofstream(empty).flush();
  std::ofstream(other) << "not a certificate\n";
  std::ofstream(broken) << std::ifstream(ca).rdbuf()
                        << "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  struct Case {
    TlsOptions tls;
    const char* why;
  };
  const Case kCases[] = {
      {{.ca_file = missing}, "missing\" cannot be read"},
      {{.ca_file = empty}, "empty\" is empty"},
      {{.ca_file = other}, "other\" has no certificate in PEM"},
      {{.ca_file = broken}, "broken\" has a broken certificate, number 2"},
      {{.cert_file = other, .key_file = ca}, "the certificate file"},
      {{.cert_file = ca, .key_file = ca}, "ca.pem\" has no private key in PEM"},
      {{.cert_file = ca, .key_file = missing}, "the key file"},
      {{.cert_file = missing, .key_file = ca}, "the certificate file"},
      {{.cert_file = ca}, "without a key file"},
      {{.key_file = ca}, "without a certificate file"},
  };
  for (const Case& c : kCases) {
    const absl::Status status = Call("127.0.0.1:1", {.tls = c.tls});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.why));
  }
}

}  // namespace
}  // namespace opserve
