// The C++ client's sessions with a daemon.

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/integration/await_session.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"

namespace opserve::server {
namespace {

int64_t Launches() { return HostCount(OPSERVE_HOST_LAUNCHES); }

double ClosedSessions(const InProcessDaemon& daemon) {
  return MetricValue(daemon.daemon(), "opserve_sessions_total", {{"result", "closed"}});
}

// Calls from several threads until it is stopped, each of which must succeed.
class Load {
 public:
  explicit Load(Client* client) {
    for (int i = 0; i < 4; ++i) {
      threads_.emplace_back([this, client] {
        while (!is_stopping_) {
          const absl::StatusOr<Response> response = client->Execute(MinusOne());
          ASSERT_TRUE(response.ok()) << response.status();
          EXPECT_EQ((*response->results[0].values<float>())[0], -1);
          ++num_calls_;
        }
      });
    }
  }
  ~Load() { Stop(); }

  int num_calls() const { return num_calls_; }
  void Stop() {
    is_stopping_ = true;
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

 private:
  std::atomic<bool> is_stopping_ = false;
  std::atomic<int> num_calls_ = 0;
  std::vector<std::thread> threads_;
};

TEST(ClientSessionTest, SessionsOfAShortAgeFollowEachOther) {
  Config config = InProcessDaemon::DefaultConfig();
  config.max_connection_age_grace = absl::Milliseconds(200);
  InProcessDaemon daemon(config);
  const auto client = *Client::Connect(daemon.target(), {.retry = {.max_attempts = 1}});
  const int64_t launches = Launches();

  Load load(client.get());
  // At most every second one is a probe.
  EXPECT_TRUE(Await([&] { return ClosedSessions(daemon) >= 6; }));
  load.Stop();

  EXPECT_EQ(Launches() - launches, load.num_calls());  // no request ran twice
}

TEST(ClientSessionTest, ADaemonsRestartCostsTimeOnly) {
  const Config config = InProcessDaemon::DefaultConfig();
  auto daemon = std::make_unique<InProcessDaemon>(config);
  const auto client = *Client::Connect(daemon->target());
  AwaitSession(*daemon, *client);

  Load load(client.get());
  EXPECT_TRUE(Await([&] { return load.num_calls() >= 100; }));
  daemon = nullptr;
  daemon = std::make_unique<InProcessDaemon>(config);
  AwaitSession(*daemon, *client);
  load.Stop();
}

TEST(ClientSessionTest, AStreamsRequestsTravelInSessionsAndOutliveThem) {
  const Config config = InProcessDaemon::DefaultConfig();
  auto daemon = std::make_unique<InProcessDaemon>(config);
  const auto client = *Client::Connect(daemon->target());
  AwaitSession(*daemon, *client);
  const auto frames = [&] {
    return MetricValue(daemon->daemon(), "opserve_session_frames_total", {});
  };
  const double before = frames();
  const auto stream = *client->OpenStream({.window = 8});
  std::atomic<int> right = 0;
  const auto send_some = [&] {
    for (int i = 0; i < 50; ++i) {
      stream->Execute(MinusOne(), [&](const absl::StatusOr<Response>& response) {
        right += response.ok() && (*response->results[0].values<float>())[0] == -1;
      });
    }
  };

  send_some();
  EXPECT_TRUE(Await([&] { return right == 50; }));
  EXPECT_GE(frames(), before + 50);
  send_some();
  daemon = nullptr;
  daemon = std::make_unique<InProcessDaemon>(config);
  send_some();

  EXPECT_EQ(stream->Finish(), absl::OkStatus());
  EXPECT_EQ(right, 150);
}

TEST(ClientSessionTest, APreparedProgramOutlivesTheClientWithItsSession) {
  InProcessDaemon daemon;
  auto client = *Client::Connect(daemon.target());
  AwaitSession(daemon, *client);
  opserve::Program p;
  p.Return(p.Neg(p.Input(kFloat, {1})));
  const opserve::PreparedProgram negate = client->Prepare(p.request()).value();
  const std::vector<opserve::PreparedProgram::Input> inputs = {Tensor::Owning<float>({1}, {2})};
  EXPECT_TRUE(negate(inputs).ok());

  client = nullptr;

  const absl::StatusOr<Response> response = negate(inputs);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ((*response->results[0].values<float>())[0], -2);
}

TEST(ClientSessionTest, RequestsKeepTheirTraceDeadlineAndCancellation) {
  InProcessDaemon daemon(InProcessDaemon::OneLane());
  const auto client = *Client::Connect(
      daemon.target(), {.retry = {.max_attempts = 1}, .traceparent = [] {
                          return "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
                        }});
  AwaitSession(daemon, *client);
  const double calls = MetricValue(daemon.daemon(), "opserve_session_frames_total", {});

  Request request = MinusOne();
  request.want_receipt = true;
  const absl::StatusOr<Response> response = client->Execute(request);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->receipt->trace_id(), "0af7651916cd43dd8448eb211c80319c");

  const int64_t launches = Launches();
  InjectFaults("kernel=*,slow=1000000");
  std::future<absl::StatusOr<Response>> slow = client->ExecuteAsync(MinusOne());
  EXPECT_TRUE(Await([&] { return Launches() > launches; }));
  request.timeout = absl::Milliseconds(50);
  std::future<absl::StatusOr<Response>> hopeless = client->ExecuteAsync(request);
  std::promise<absl::Status> cancelled;
  const CallHandle handle = client->ExecuteAsync(
      MinusOne(),
      [&cancelled](absl::StatusOr<Response> outcome) { cancelled.set_value(outcome.status()); });
  handle.Cancel();

  EXPECT_EQ(cancelled.get_future().get().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(hopeless.get().status().code(), absl::StatusCode::kDeadlineExceeded);
  ClearFaults();
  EXPECT_TRUE(slow.get().ok());
  // Four requests, and a cancellation unless it came before its request was sent.
  EXPECT_GE(MetricValue(daemon.daemon(), "opserve_session_frames_total", {}), calls + 3);
}

}  // namespace
}  // namespace opserve::server
