// The daemon's graceful end under load: a call that it does not serve any more fails with
// UNAVAILABLE, and never looks as if its client had cancelled it.
//
// OPSERVE_GRACEFUL_ENDS: how many daemons are ended (default 100).

#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "grpc/health/v1/health_service.grpc.pb.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "opserve/v1/operator_service.grpc.pb.h"
#include "tests/await.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/execute_stream_calls.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/sanitized.h"

namespace opserve::server {
namespace {

constexpr int kSmall = 10;
constexpr int kLarge = 200'000;  // elements; such a message takes many reads to arrive

int NumberOfEnds() {
  const char* text = std::getenv("OPSERVE_GRACEFUL_ENDS");
  int ends = kIsSanitized ? 32 : 100;
  EXPECT_TRUE(text == nullptr || absl::SimpleAtoi(text, &ends)) << text;
  return ends;
}

// A connection of its own, so that only its own calls can break it.
std::shared_ptr<grpc::Channel> Connect(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

bool IsDraining(const grpc::Status& status) { return DetailOf(status).reason() == "draining"; }

// Clients that call until they lose their connection, or complain that they have not for too long.
class Load {
 public:
  explicit Load(const std::string& target) : target_(target) {
    for (int i = 0; i < 3; ++i) Start([this] { Execute(kSmall); });
    Start([this] { Execute(kLarge); });
    Start([this] { AskStatus(); });
    Start([this] { StreamRequests(); });
    Start([this] { WaitOnStream(); });
    Start([this] { WatchHealth(); });
  }

  // Until each client was answered once.
  bool AwaitAnswers() const {
    return Await([this] { return answered_ == static_cast<int>(threads_.size()); });
  }

  // Waits until every client has lost its connection.
  void Join() {
    for (std::thread& thread : threads_) thread.join();
  }

  // What was wrong, a line for each.
  std::string Complaints() const {
    absl::MutexLock lock(&mutex_);
    return absl::StrJoin(complaints_, "\n");
  }

 private:
  void Start(std::function<void()> client) { threads_.emplace_back(std::move(client)); }

  void Complain(const char* client, const grpc::Status& status) {
    absl::MutexLock lock(&mutex_);
    complaints_.push_back(absl::StrCat(client, ": code ", status.error_code(), ", reason \"",
                                       DetailOf(status).reason(), "\": ", status.error_message()));
  }

  // Whether the client calls again.
  bool GoesOn(const char* client, const grpc::Status& status) {
    if (status.ok()) return true;
    if (status.error_code() != grpc::UNAVAILABLE) Complain(client, status);
    // Without a reason the answer is the client's own: there is no connection any more.
    return IsDraining(status);
  }

  // Repeats a unary call.
  void Repeat(
      const char* client,
      const std::function<grpc::Status(v1::OperatorService::Stub&, grpc::ClientContext*)>& call) {
    const auto stub = v1::OperatorService::NewStub(Connect(target_));
    bool goes_on = true;
    for (bool is_first = true; goes_on; is_first = false) {
      grpc::ClientContext context;
      context.set_deadline(absl::ToChronoTime(end_));
      context.set_wait_for_ready(is_first);
      goes_on = GoesOn(client, call(*stub, &context));
      if (is_first) ++answered_;
    }
  }

  void Execute(int64_t elements) {
    const v1::ExecuteRequest request = OnesRequest(elements, "");
    Repeat("Execute", [&request](auto& stub, grpc::ClientContext* context) {
      v1::ExecuteResponse response;
      return stub.Execute(context, request, &response);
    });
  }

  void AskStatus() {
    Repeat("GetServerStatus", [](auto& stub, grpc::ClientContext* context) {
      v1::GetServerStatusResponse response;
      return stub.GetServerStatus(context, {}, &response);
    });
  }

  // One request after the other on a stream. Those that are refused are told so one by one.
  void StreamRequests() {
    const auto stub = v1::OperatorService::NewStub(Connect(target_));
    TestStream stream(*stub, end_ - absl::Now());
    for (uint64_t id = 1;; ++id) {
      if (!stream.Send(OnesStreamRequest(id))) break;
      const v1::ExecuteStreamResponse response = stream.Receive();
      if (response.id() != id) break;
      if (id == 1) ++answered_;
      if (response.has_error() && response.error().code() != grpc::UNAVAILABLE) {
        Complain("a request of ExecuteStream",
                 {static_cast<grpc::StatusCode>(response.error().code()),
                  response.error().message(), response.error().SerializeAsString()});
      }
    }
    GoesOn("ExecuteStream", stream.Finish());
  }

  // A stream without requests is told as well.
  void WaitOnStream() {
    const auto stub = v1::OperatorService::NewStub(Connect(target_));
    TestStream stream(*stub, end_ - absl::Now());
    stream.Send(OnesStreamRequest(1));
    stream.Receive();
    ++answered_;
    stream.Receive();
    const grpc::Status status = stream.Finish();
    if (!IsDraining(status)) Complain("ExecuteStream without requests", status);
  }

  void WatchHealth() {
    const auto stub = grpc::health::v1::Health::NewStub(Connect(target_));
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(end_));
    const auto reader = stub->Watch(&context, {});
    grpc::health::v1::HealthCheckResponse response;
    reader->Read(&response);
    ++answered_;
    while (reader->Read(&response)) {
    }
    const grpc::Status status = reader->Finish();
    if (!IsDraining(status)) Complain("Health/Watch", status);
  }

  const std::string target_;
  const absl::Time end_ = absl::Now() + absl::Minutes(1);
  std::atomic<int> answered_ = 0;
  std::vector<std::thread> threads_;
  mutable absl::Mutex mutex_;
  std::vector<std::string> complaints_ ABSL_GUARDED_BY(mutex_);
};

Config Listening(const std::string& host) {
  Config config = InProcessDaemon::OneLane();
  if (!host.empty()) config.listen = {{.is_unix = false, .path = "", .host = host, .port = 0}};
  return config;
}

// Ends daemons that listen on `host` (empty: on a Unix socket) while clients call.
void EndDaemons(const std::string& host, int ends) {
  for (int i = 0; i < ends; ++i) {
    absl::StatusOr<std::unique_ptr<Daemon>> daemon = Daemon::Start(Listening(host));
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    const std::string& address = (*daemon)->addresses()[0];
    Load load(host.empty() ? address
                           : absl::StrCat("127.0.0.1", address.substr(address.rfind(':'))));
    EXPECT_TRUE(load.AwaitAnswers());

    EXPECT_EQ((*daemon)->Drain(), 0);
    daemon->reset();

    load.Join();
    ASSERT_EQ(load.Complaints(), "") << "at end " << i + 1 << " of " << ends;
  }
}

// The ends that the other tests leave.
TEST(GracefulEndTest, CallsOverUnixSocketsAreToldUnavailable) {
  const int ends = NumberOfEnds();
  EndDaemons("", ends - ends / 4 - 2 * (ends / 8));
}

TEST(GracefulEndTest, CallsOverTcpAreToldUnavailable) {
  EndDaemons("127.0.0.1", NumberOfEnds() / 4);
}

// Connections that other machines could make; calls of these come without having been checked.
TEST(GracefulEndTest, CallsOverPlaintextAreToldUnavailable) {
  EndDaemons("0.0.0.0", NumberOfEnds() / 8);
}

TEST(GracefulEndTest, CallsOfAProcessAreToldUnavailable) {
  const std::string socket = absl::StrCat("/tmp/opserve-graceful-end-", getpid(), ".sock");
  const int ends = NumberOfEnds() / 8;
  for (int i = 0; i < ends; ++i) {
    DaemonProcess daemon({absl::StrCat("--listen=unix:", socket), "--metrics_listen=none",
                          "--admin_listen=none", "--device=0", "--drain_delay=0s"});
    const std::string target = absl::StrCat("unix:", socket);
    ASSERT_TRUE(
        Connect(target)->WaitForConnected(absl::ToChronoTime(absl::Now() + absl::Minutes(1))));
    Load load(target);
    EXPECT_TRUE(load.AwaitAnswers());

    daemon.End(SIGTERM);

    load.Join();
    ASSERT_EQ(load.Complaints(), "") << "at end " << i + 1 << " of " << ends;
  }
}

}  // namespace
}  // namespace opserve::server
