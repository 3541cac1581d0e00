// Who gets in, as whom, and what they may do there.

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "opserve/v1/operator_service.grpc.pb.h"
#include "server/access/file_descriptor.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/requests.h"
#include "tests/integration/unix_connection.h"

namespace opserve::server {
namespace {

using ::testing::HasSubstr;

// printf %s alice-token | sha256sum, and so on
constexpr char kTenants[] = R"(
  tenant { name: "alice"
           token_sha256: "9c220f200955d76c0a38d308225e0ef10c5f971acaf2f8d1d8f732affa5bd1dc" }
  tenant { name: "bob"
           token_sha256: "97dd3707015dcf069cf73022ed7173b1165db6eff24b441cb57fd069a8c4e525" })";

config::ServerConfig Values(const std::string& text) {
  config::ServerConfig values;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &values)) << text;
  return values;
}

// Serves also on TCP.
Config WithTenants(const std::string& text) {
  Config config = InProcessDaemon::DefaultConfig();
  config.values = Values(text);
  config.tenants = *TenantsFrom(config.values);
  config.listen.push_back({.is_unix = false, .path = "", .host = "127.0.0.1", .port = 0});
  return config;
}

absl::Status Call(const std::string& target, const std::string& token) {
  const auto client = *Client::Connect(target, {.token = token, .retry = {.max_attempts = 1}});
  const auto response = client->Execute(OnesRequest(10));
  EXPECT_EQ(response.ok(), IsAllOnes(response, 10));
  return response.status();
}

TEST(AccessTest, OnlyCallersWithCredentialsGetIn) {
  const InProcessDaemon daemon(WithTenants(kTenants));
  for (const std::string& address : daemon.daemon().addresses()) {
    EXPECT_EQ(Call(address, "alice-token"), absl::OkStatus()) << address;
    for (const char* token : {"", "alice-toker", "bob"}) {
      EXPECT_EQ(Call(address, token).code(), absl::StatusCode::kUnauthenticated)
          << address << " " << token;
    }
  }
}

absl::StatusCode CallWithAuthorization(const std::string& target, const std::string& value) {
  const auto stub =
      v1::OperatorService::NewStub(grpc::CreateChannel(target, grpc::InsecureChannelCredentials()));
  grpc::ClientContext rpc;
  rpc.AddMetadata("authorization", value);
  v1::GetServerStatusResponse response;
  return static_cast<absl::StatusCode>(stub->GetServerStatus(&rpc, {}, &response).error_code());
}

TEST(AccessTest, ATokenComesWithItsScheme) {
  const InProcessDaemon daemon(WithTenants(kTenants));
  for (const std::string& target : daemon.daemon().addresses()) {
    for (const char* value : {"Bearer alice-token", "bearer alice-token", "BEARER alice-token"}) {
      EXPECT_EQ(CallWithAuthorization(target, value), absl::StatusCode::kOk) << value;
    }
    for (const char* value : {"alice-token", "Beareralice-token", "Basic alice-token", "Bearer",
                              "Bearer ", "Token alice-token"}) {
      EXPECT_EQ(CallWithAuthorization(target, value), absl::StatusCode::kUnauthenticated) << value;
    }
  }
}

TEST(AccessTest, WhoIsRefusedIsCounted) {
  const InProcessDaemon daemon(WithTenants(kTenants));
  const auto refusals = [&daemon] {
    return MetricValue(daemon.daemon(), "opserve_admission_rejections_total",
                       {{"tenant", "_nobody"}, {"reason", "unauthenticated"}});
  };
  Call(daemon.target(), "alice-token").IgnoreError();
  EXPECT_EQ(refusals(), 0);
  for (int i = 1; i <= 3; ++i) {
    EXPECT_FALSE(Call(daemon.target(), "mallory").ok());
    EXPECT_EQ(refusals(), i);
  }
}

TEST(AccessTest, TheUserBehindAUnixSocketIsKnown) {
  const InProcessDaemon daemon(
      WithTenants(absl::StrCat("tenant { name: 'me' uid: ", geteuid(), " }")));
  EXPECT_EQ(Call(daemon.daemon().addresses()[0], ""), absl::OkStatus());
  EXPECT_EQ(Call(daemon.daemon().addresses()[1], "").code(), absl::StatusCode::kUnauthenticated);
}

TEST(AccessTest, TenantsDoNotSeeEachOthersTensors) {
  const InProcessDaemon daemon(
      WithTenants(absl::StrCat(kTenants, "tenant { name: 'me' uid: ", geteuid(), " }")));
  const std::string target = daemon.daemon().addresses()[0];
  const auto me = *Client::Connect(target);
  const auto alice = *Client::Connect(target, {.token = "alice-token"});
  const auto mine = me->Upload(Tensor::Owning<float>({3}, {1, 2, 3}));
  ASSERT_TRUE(mine.ok()) << mine.status();
  const absl::Status theirs = alice->Download(mine->handle).status();
  EXPECT_EQ(ReasonOf(theirs), "tensor_unknown");
  EXPECT_EQ(theirs.message(), alice->Download("no such handle").status().message());
  EXPECT_EQ(*alice->Release({mine->handle}), 0);
  EXPECT_TRUE(me->Download(mine->handle).ok());
}

TEST(AccessTest, RatesAndOperatorsAreKept) {
  const InProcessDaemon daemon(
      WithTenants(absl::StrCat("tenant { name: 'me' uid: ", geteuid(),
                               " operator: 'L1LossBackward' requests_per_second: 1 }")));
  const auto client = *Client::Connect(daemon.target(), {.retry = {.max_attempts = 1}});
  Request other = OnesRequest(10);
  other.invocations[0].operator_name = "KlDivBackward";
  const absl::Status forbidden = client->Execute(other).status();
  EXPECT_EQ(forbidden.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ReasonOf(forbidden), "forbidden");
  absl::Status limited;
  while (limited.ok()) limited = client->Execute(OnesRequest(10)).status();
  EXPECT_EQ(limited.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(limited), "rate_limited");
  EXPECT_GT(RetryPushbackOf(limited), absl::ZeroDuration());
}

TEST(AccessTest, AReloadTakesTenantsAndNothingElse) {
  InProcessDaemon daemon(WithTenants(kTenants));
  const std::string target = daemon.target();
  EXPECT_FALSE(Call(target, "").ok());
  const auto reload = [&daemon](const std::string& text) {
    return daemon.daemon().Reload(ConfigFrom(Values(text)));
  };

  EXPECT_EQ(reload(absl::StrCat("tenant { name: 'me' uid: ", geteuid(), " }")), absl::OkStatus());
  EXPECT_TRUE(Call(target, "").ok());
  EXPECT_FALSE(Call(target, "alice-token").ok());

  struct Case {
    std::string text;
    const char* why;
  };
  for (const Case& c :
       {Case{absl::StrCat(kTenants, " scrub: 'never'"), "only a restart can change scrub"},
        Case{"tenant { name: 'a' operator: 'Nonsense' }", "there is no \"Nonsense\""},
        Case{"tenant { name: 'a' weight: 0 }", "must be from 1"},
        Case{"tenant { name: 'a' device_memory { reserved_bytes: 99999999999 } }",
             "tenants reserve 99999999999 bytes of device memory"},
        Case{"tenant { name: 'a' pinned_memory { reserved_bytes: 99999999999 } }",
             "tenants reserve 99999999999 bytes of page-locked memory"}}) {
    EXPECT_THAT(std::string(reload(c.text).message()), HasSubstr(c.why));
    EXPECT_TRUE(Call(target, "").ok()) << "the old tenants stay";
  }
}

TEST(AccessTest, ConnectionsAreBounded) {
  Config config = InProcessDaemon::DefaultConfig();
  config.max_connections = 4;
  InProcessDaemon daemon(config);
  ASSERT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(10)), 10));

  std::vector<FileDescriptor> flood;
  for (int i = 0; i < 3; ++i) flood.push_back(ConnectToUnixSocket(config.listen[0].path));
  // One too many: closed at once.
  const FileDescriptor refused = ConnectToUnixSocket(config.listen[0].path);
  char byte = 0;
  EXPECT_LE(read(refused.get(), &byte, 1), 0);
  EXPECT_EQ(MetricValue(daemon.daemon(), "opserve_connections", {}), 4);
  EXPECT_EQ(MetricValue(daemon.daemon(), "opserve_rejected_connections_total", {}), 1);
  // Who was there goes on, and when others leave there is room.
  EXPECT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(10)), 10));
  flood.clear();
  absl::Status status;
  do {
    status = Call(config.listen[0].ToString(), "");
  } while (!status.ok());
}

}  // namespace
}  // namespace opserve::server
