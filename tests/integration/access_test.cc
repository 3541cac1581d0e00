// Who gets in, as whom, and what they may do there.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "grpc/health/v1/health_service.grpc.pb.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "opserve/v1/operator_service.grpc.pb.h"
#include "server/net/file_descriptor.h"
#include "tests/await.h"
#include "tests/integration/door.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/execute_stream_calls.h"
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

double Connections(const InProcessDaemon& daemon, const char* state) {
  return MetricValue(daemon.daemon(), "opserve_connections",
                     {{"listener", "unix"}, {"state", state}});
}

// Waits until the daemon closes the connection; false: not within a minute.
bool IsClosedByPeer(const FileDescriptor& connection) {
  const timeval minute = {.tv_sec = 60, .tv_usec = 0};
  setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof(minute));
  char bytes[4096];
  ssize_t size = 0;
  while ((size = read(connection.get(), bytes, sizeof(bytes))) > 0) {  // gRPC greets first
  }
  return size == 0 || errno == ECONNRESET;
}

absl::Status OutcomeOf(const std::string& target, const std::string& token, Door door) {
  const grpc::Status status = DoorCaller(target, door, token).ExecuteOnes(10);
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

class AccessTest : public testing::TestWithParam<Door> {
 protected:
  static absl::Status Call(const std::string& target, const std::string& token) {
    return OutcomeOf(target, token, GetParam());
  }
};

TEST_P(AccessTest, OnlyCallersWithCredentialsGetIn) {
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

TEST(ConnectionAccessTest, ATokenComesWithItsScheme) {
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

TEST_P(AccessTest, WhoIsRefusedIsCounted) {
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

TEST_P(AccessTest, TheUserBehindAUnixSocketIsKnown) {
  const InProcessDaemon daemon(
      WithTenants(absl::StrCat("tenant { name: 'me' uid: ", geteuid(), " }")));
  EXPECT_EQ(Call(daemon.daemon().addresses()[0], ""), absl::OkStatus());
  EXPECT_EQ(Call(daemon.daemon().addresses()[1], "").code(), absl::StatusCode::kUnauthenticated);
}

TEST(ConnectionAccessTest, TenantsDoNotSeeEachOthersTensors) {
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

TEST_P(AccessTest, RatesAndOperatorsAreKept) {
  const InProcessDaemon daemon(
      WithTenants(absl::StrCat("tenant { name: 'me' uid: ", geteuid(),
                               " operator: 'L1LossBackward' requests_per_second: 1 }")));
  DoorCaller caller(daemon.target(), GetParam());
  v1::ExecuteRequest other = OnesRequest(10, "");
  other.mutable_invocations(0)->set_operator_("KlDivBackward");
  v1::ExecuteResponse response;
  const grpc::Status forbidden = caller.Execute(other, &response);
  EXPECT_EQ(forbidden.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(DetailOf(forbidden).reason(), "forbidden");
  grpc::Status limited;
  EXPECT_TRUE(Await([&] {
    limited = caller.ExecuteOnes(10);
    return !limited.ok();
  }));
  EXPECT_EQ(limited.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(DetailOf(limited).reason(), "rate_limited");
  EXPECT_GT(DetailOf(limited).retry_pushback_ms(), 0);
}

TEST_P(AccessTest, AReloadTakesTenantsAndNothingElse) {
  InProcessDaemon daemon(WithTenants(kTenants));
  const std::string target = daemon.target();
  EXPECT_FALSE(Call(target, "").ok());
  const auto reload = [&daemon](const std::string& text) {
    return daemon.daemon().Reload(ConfigFrom(Values(text))).status();
  };

  const std::string me = absl::StrCat("tenant { name: 'me' uid: ", geteuid(), " }");
  EXPECT_EQ(reload(me).code(), absl::StatusCode::kDataLoss) << "tenants with tokens were lost";
  EXPECT_TRUE(Call(target, "alice-token").ok());
  EXPECT_EQ(reload(me + " allow_no_tenants: true"), absl::OkStatus());
  EXPECT_TRUE(Call(target, "").ok());
  EXPECT_FALSE(Call(target, "alice-token").ok());

  struct Case {
    std::string text;
    const char* why;
  };
  for (const Case& c :
       {Case{"scrub: 'never'", "only a restart can change scrub"},
        Case{"tenant { name: 'a' operator: 'Nonsense' }", "there is no \"Nonsense\""},
        Case{"tenant { name: 'a' weight: 0 }", "must be from 1"},
        Case{"tenant { name: 'a' device_memory { reserved_bytes: 99999999999 } }",
             "tenants reserve 99999999999 bytes of device memory"},
        Case{"tenant { name: 'a' pinned_memory { reserved_bytes: 99999999999 } }",
             "tenants reserve 99999999999 bytes of page-locked memory"}}) {
    EXPECT_THAT(std::string(reload(c.text + me).message()), HasSubstr(c.why));
    EXPECT_TRUE(Call(target, "").ok()) << "the old tenants stay";
  }
}

TEST(ConnectionAccessTest, ConnectionsAreBounded) {
  Config config = InProcessDaemon::DefaultConfig();
  config.max_connections = 4;
  config.max_connections_per_user = 4;
  InProcessDaemon daemon(config);
  ASSERT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(10)), 10));

  // Identified connections stay; one too many is closed at once.
  const std::string target = config.listen[0].ToString();
  const auto connect = [&target] {
    return *Client::Connect(target, {.retry = {.max_attempts = 1}});
  };
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(connect());
    ASSERT_TRUE(IsAllOnes(clients.back()->Execute(OnesRequest(10)), 10));
  }
  const FileDescriptor refused = ConnectToUnixSocket(config.listen[0].path);
  EXPECT_TRUE(IsClosedByPeer(refused));
  EXPECT_TRUE(Await([&] { return Connections(daemon, "identified") == 4; }));
  EXPECT_EQ(MetricValue(daemon.daemon(), "opserve_rejected_connections_total",
                        {{"listener", "unix"}, {"reason", "user"}}),
            1);
  // Who was there goes on, and when others leave there is room.
  EXPECT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(10)), 10));
  clients.clear();
  EXPECT_TRUE(Await([&] { return OutcomeOf(target, "", Door::kCall).ok(); }));
}

TEST(ConnectionAccessTest, SilentConnectionsMakeRoom) {
  Config config = InProcessDaemon::DefaultConfig();
  config.max_connections = 4;
  config.max_connections_per_user = 4;
  InProcessDaemon daemon(config);
  ASSERT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(10)), 10));
  const std::string path = config.listen[0].path;
  const auto health = grpc::health::v1::Health::NewStub(
      grpc::CreateChannel(config.listen[0].ToString(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext rpc;
  grpc::health::v1::HealthCheckResponse response;
  ASSERT_TRUE(health->Check(&rpc, {}, &response).ok());
  ASSERT_TRUE(Await([&] { return Connections(daemon, "answered") == 1; }));

  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 2; ++i) silent.push_back(ConnectToUnixSocket(path));
  ASSERT_TRUE(Await([&] { return Connections(daemon, "silent") == 2; }));
  silent.push_back(ConnectToUnixSocket(path));
  EXPECT_TRUE(IsClosedByPeer(silent[0]));
  silent.push_back(ConnectToUnixSocket(path));
  EXPECT_TRUE(IsClosedByPeer(silent[1]));
  EXPECT_EQ(MetricValue(daemon.daemon(), "opserve_ended_connections_total",
                        {{"listener", "unix"}, {"reason", "evicted"}}),
            2);
  // Neither the client nor the probe had to give way.
  EXPECT_EQ(Connections(daemon, "answered"), 1);
  EXPECT_EQ(Connections(daemon, "identified"), 1);
  EXPECT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(10)), 10));
}

TEST(ConnectionAccessTest, AConnectionHasTimeForItsFirstCall) {
  Config config = WithTenants(kTenants);
  config.first_call_timeout = absl::Milliseconds(200);
  InProcessDaemon daemon(config);
  const std::string target = daemon.target();
  const auto alice = *Client::Connect(target, {.token = "alice-token"});
  ASSERT_TRUE(alice->Execute(OnesRequest(10)).ok());
  const auto stub =
      v1::OperatorService::NewStub(grpc::CreateChannel(target, grpc::InsecureChannelCredentials()));
  grpc::ClientContext refused;
  v1::GetServerStatusResponse response;
  EXPECT_EQ(stub->GetServerStatus(&refused, {}, &response).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  const FileDescriptor silent = ConnectToUnixSocket(config.listen[0].path);
  EXPECT_TRUE(IsClosedByPeer(silent));
  // The one whose call was refused, too; the identified one has stayed.
  EXPECT_TRUE(Await([&] {
    return MetricValue(daemon.daemon(), "opserve_ended_connections_total",
                       {{"listener", "unix"}, {"reason", "silent"}}) >= 2;
  }));
  EXPECT_TRUE(Await([&] { return Connections(daemon, "identified") == 1; }));
  EXPECT_TRUE(alice->Execute(OnesRequest(10)).ok());
}

// Over a slow network the message of a first call takes longer than a connection may be silent.
TEST(ConnectionAccessTest, AFirstCallMayTakeLong) {
  Config config = InProcessDaemon::DefaultConfig();
  config.listen.push_back({.is_unix = false, .path = "", .host = "127.0.0.1", .port = 0});
  config.first_call_timeout = absl::Milliseconds(200);
  InProcessDaemon daemon(config);
  const std::string address = daemon.daemon().addresses()[1];
  sockaddr_in peer = {};
  peer.sin_family = AF_INET;
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int port = 0;
  ASSERT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  peer.sin_port = htons(static_cast<uint16_t>(port));
  const auto connect_to_daemon = [&] {
    FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)), 0);
    return fd;
  };
  const FileDescriptor sender = connect_to_daemon();
  // HTTP/2's preface, settings, and frames of a kind that has no meaning.
  std::string bytes("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
  for (int i = 0; i < 4; ++i) {
    bytes += std::string("\0\x30\0\xf0\0\0\0\0\0", 9) + std::string(0x3000, 'x');
  }
  ASSERT_EQ(send(sender.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
  EXPECT_TRUE(IsClosedByPeer(connect_to_daemon()));  // that one says nothing
  EXPECT_TRUE(Await([&] {
    return MetricValue(daemon.daemon(), "opserve_connections",
                       {{"listener", "tcp"}, {"state", "answered"}}) == 1;
  }));
}

int64_t OpenDescriptors() {
  const std::filesystem::directory_iterator descriptors("/proc/self/fd");
  return std::distance(begin(descriptors), end(descriptors));
}

TEST(ConnectionAccessTest, AConnectionTakesOneDescriptor) {
  const Config config = InProcessDaemon::DefaultConfig();
  InProcessDaemon daemon(config);
  ASSERT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(10)), 10));
  const int64_t before = OpenDescriptors();
  std::vector<FileDescriptor> connections;
  for (int i = 0; i < 50; ++i) connections.push_back(ConnectToUnixSocket(config.listen[0].path));
  ASSERT_TRUE(Await([&] { return Connections(daemon, "silent") == 50; }));
  // One at each end, which is this process, too; gRPC may have opened or closed some of its own.
  EXPECT_NEAR(OpenDescriptors() - before, 100, 10);
}

INSTANTIATE_TEST_SUITE_P(Doors, AccessTest, AllDoors(), DoorName);

}  // namespace
}  // namespace opserve::server
