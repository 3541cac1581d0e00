// Connections that flood are ended and counted; those that are merely busy are not. Streams that
// anybody may open are few.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "client/cpp/client.h"
#include "google/protobuf/text_format.h"
#include "grpc/health/v1/health_service.grpc.pb.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/net/http2_inspector.h"
#include "tests/await.h"
#include "tests/integration/certificates.h"
#include "tests/integration/floods.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/requests.h"

namespace opserve::server {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// The daemon's own user is nobody; printf %s alice-token | sha256sum
constexpr char kAlice[] = R"(
  tenant { name: "alice"
           token_sha256: "9c220f200955d76c0a38d308225e0ef10c5f971acaf2f8d1d8f732affa5bd1dc" })";

Config WithTenant() {
  Config config = InProcessDaemon::DefaultConfig();
  config.max_streams_per_connection = 128;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kAlice, &config.values));
  config.tenants = *TenantsFrom(config.values);
  return config;
}

std::unique_ptr<Client> ConnectAsAlice(const InProcessDaemon& daemon) {
  return *Client::Connect(daemon.target(), {.token = "alice-token", .retry = {.max_attempts = 1}});
}

double Ended(const InProcessDaemon& daemon, const std::string& flood) {
  return MetricValue(daemon.daemon(), "opserve_flooding_connections_total", {{"flood", flood}});
}

double EndedAtAll(const InProcessDaemon& daemon) {
  double sum = 0;
  for (size_t i = 1; i < kNumFloods; ++i) {
    sum += Ended(daemon, std::string(FloodName(static_cast<Flood>(i))));
  }
  return sum;
}

// Until the daemon ends the connection, if it does within what no client sends.
bool IsEnded(RawHttp2& peer, const FloodKind& kind) {
  kind.begin(peer);
  for (int i = 0; i < 2000; ++i) {
    kind.send(peer);
    if (!peer.Flush()) return true;
  }
  // All of it may fit into the sockets' buffers while the connection waits for its turn.
  return Await([&] {
    peer.Ping();
    return !peer.Flush();
  });
}

// Each of the listeners' kinds.
enum class Transport { kUnix, kTcp, kTls };

class FloodedDaemonTest : public testing::TestWithParam<Transport> {
 protected:
  Config ConfigOf() const {
    Config config = WithTenant();
    if (GetParam() == Transport::kUnix) return config;
    config.listen.push_back({.is_unix = false, .path = "", .host = "127.0.0.1", .port = 0});
    if (GetParam() == Transport::kTls) {
      config.tls = TlsFilesConfig{.cert = certificates_.File("server"),
                                  .key = certificates_.Key("server"),
                                  .client_ca = "",
                                  .crl = ""};
    }
    return config;
  }

  static WireTarget TargetOf(const Config& config, const InProcessDaemon& daemon) {
    if (GetParam() == Transport::kUnix) return {.unix_path = config.listen[0].path};
    const std::string address = daemon.daemon().addresses()[1];
    return {.unix_path = "",
            .port = std::stoi(address.substr(address.rfind(':') + 1)),
            .has_tls = GetParam() == Transport::kTls};
  }

  const Certificates certificates_;
};

std::string NameOf(const testing::TestParamInfo<Transport>& info) {
  constexpr const char* kNames[] = {"Unix", "Tcp", "Tls"};
  return kNames[static_cast<int>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Transports, FloodedDaemonTest,
                         testing::Values(Transport::kUnix, Transport::kTcp, Transport::kTls),
                         &NameOf);

TEST_P(FloodedDaemonTest, EndsEachKindOfFlood) {
  const Config config = ConfigOf();
  const InProcessDaemon daemon(config);
  const auto alice = ConnectAsAlice(daemon);
  ASSERT_TRUE(IsAllOnes(alice->Execute(OnesRequest(10)), 10));
  const WireTarget target = TargetOf(config, daemon);
  for (const FloodKind& kind : FloodKinds()) {
    const double before = EndedAtAll(daemon);
    RawHttp2 peer(target);
    EXPECT_TRUE(IsEnded(peer, kind)) << kind.name;
    EXPECT_EQ(EndedAtAll(daemon), before + 1) << kind.name;
    EXPECT_GE(Ended(daemon, kind.label), 1) << kind.name;
    EXPECT_TRUE(IsAllOnes(alice->Execute(OnesRequest(10)), 10)) << kind.name;
  }
}

TEST_P(FloodedDaemonTest, EndsWhatIsNotItsProtocol) {
  const Config config = ConfigOf();
  const InProcessDaemon daemon(config);
  WireTarget target = TargetOf(config, daemon);
  target.has_tls = false;
  Wire wire(target);
  wire.Send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  wire.DiscardAnswers();
  EXPECT_TRUE(Await([&] { return Ended(daemon, "malformed") == 1; }));
  EXPECT_TRUE(Await([&] { return !wire.Send("more\r\n"); }));
}

TEST(ConnectionGuardTest, LeavesClientsAloneThatCancelManyCalls) {
  const InProcessDaemon daemon(WithTenant());
  const auto alice = ConnectAsAlice(daemon);
  ASSERT_TRUE(IsAllOnes(alice->Execute(OnesRequest(10)), 10));
  for (int round = 0; round < 4; ++round) {
    constexpr int kCalls = 200;
    absl::BlockingCounter ended(kCalls);
    std::vector<CallHandle> calls;
    calls.reserve(kCalls);
    for (int i = 0; i < kCalls; ++i) {
      calls.push_back(alice->ExecuteAsync(OnesRequest(10), [&](auto) { ended.DecrementCount(); }));
    }
    for (const CallHandle& call : calls) call.Cancel();
    ended.Wait();
  }
  EXPECT_TRUE(IsAllOnes(alice->Execute(OnesRequest(10)), 10));
  EXPECT_EQ(EndedAtAll(daemon), 0);
}

TEST(ConnectionGuardTest, LeavesClientsAloneThatBeginAHundredCallsOnANewConnection) {
  const InProcessDaemon daemon(WithTenant());
  for (int round = 0; round < 20; ++round) {
    const auto alice = ConnectAsAlice(daemon);
    constexpr int kCalls = 100;
    absl::BlockingCounter ended(kCalls);
    std::atomic<int> succeeded = 0;
    for (int i = 0; i < kCalls; ++i) {
      alice->ExecuteAsync(OnesRequest(10), [&](const auto& results) {
        if (results.ok()) ++succeeded;
        ended.DecrementCount();
      });
    }
    ended.Wait();
    EXPECT_EQ(succeeded, kCalls) << round;
  }
  EXPECT_EQ(EndedAtAll(daemon), 0);
}

TEST(ConnectionGuardTest, LeavesClientsAloneThatAreBusy) {
  const InProcessDaemon daemon(WithTenant());
  const auto alice = ConnectAsAlice(daemon);
  for (int i = 0; i < 3000; ++i) {
    ASSERT_TRUE(IsAllOnes(alice->Execute(OnesRequest(10)), 10)) << i;
  }
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(IsAllOnes(alice->Execute(OnesRequest(1 << 20)), 1 << 20)) << i;
  }
  EXPECT_EQ(EndedAtAll(daemon), 0);
}

// A connection of its own.
class Watcher {
 public:
  explicit Watcher(const InProcessDaemon& daemon) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = Health::NewStub(
        grpc::CreateCustomChannel(daemon.target(), grpc::InsecureChannelCredentials(), arguments));
  }

  class Watch {
   public:
    explicit Watch(Health::Stub& stub) {
      rpc_.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(2));
      reader_ = stub.Watch(&rpc_, HealthCheckRequest());
    }
    ~Watch() {
      rpc_.TryCancel();
      if (reader_ != nullptr) reader_->Finish();
    }
    // Whether there is a first answer.
    bool Begins() {
      HealthCheckResponse response;
      return reader_->Read(&response);
    }
    // Waits for the end.
    grpc::Status End() {
      HealthCheckResponse response;
      while (reader_->Read(&response)) {
      }
      const grpc::Status status = reader_->Finish();
      reader_ = nullptr;
      return status;
    }

   private:
    grpc::ClientContext rpc_;
    std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> reader_;
  };

  std::unique_ptr<Watch> Begin() { return std::make_unique<Watch>(*stub_); }

 private:
  std::unique_ptr<Health::Stub> stub_;
};

double AnonymousStreams(const InProcessDaemon& daemon) {
  return MetricValue(daemon.daemon(), "opserve_anonymous_streams", {});
}
double EndedStreams(const InProcessDaemon& daemon, const std::string& result) {
  return MetricValue(daemon.daemon(), "opserve_anonymous_streams_ended_total",
                     {{"result", result}});
}

TEST(AnonymousStreamsTest, AConnectionWithoutIdentityHasOne) {
  const InProcessDaemon daemon(WithTenant());
  Watcher stranger(daemon);
  const auto first = stranger.Begin();
  EXPECT_TRUE(first->Begins());
  EXPECT_EQ(AnonymousStreams(daemon), 1);
  const auto second = stranger.Begin();
  EXPECT_EQ(second->End().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(EndedStreams(daemon, "refused"), 1);
  EXPECT_TRUE(Watcher(daemon).Begin()->Begins()) << "another connection may";
}

TEST(AnonymousStreamsTest, TheOldestMakesRoom) {
  Config config = WithTenant();
  config.max_anonymous_streams = 4;
  const InProcessDaemon daemon(config);
  std::vector<std::unique_ptr<Watcher>> strangers;
  std::vector<std::unique_ptr<Watcher::Watch>> watches;
  for (int i = 0; i < 6; ++i) {
    strangers.push_back(std::make_unique<Watcher>(daemon));
    watches.push_back(strangers.back()->Begin());
    EXPECT_TRUE(watches.back()->Begins()) << i;
  }
  EXPECT_EQ(AnonymousStreams(daemon), 4);
  EXPECT_EQ(EndedStreams(daemon, "evicted"), 2);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(watches[i]->End().ok()) << i;
  watches.clear();
  EXPECT_TRUE(Await([&] { return AnonymousStreams(daemon) == 0; }));
}

}  // namespace
}  // namespace opserve::server
