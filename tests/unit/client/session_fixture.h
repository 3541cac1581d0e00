// A client and a daemon that plays one.
#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/cpp/client.h"
#include "gtest/gtest.h"
#include "tests/unit/client/session_peer.h"
#include "tests/unit/client/test_server.h"

namespace opserve {

class SessionFixture : public testing::Test {
 protected:
  // Plays the rest of a session, in a thread of the server's.
  using Script = std::function<grpc::Status(SessionPeer&)>;

  SessionFixture() {
    server_.set_execute([this](auto* context, const auto& request, auto* response) {
      ++num_calls_;
      return TestServer::Echo(context, request, response);
    });
  }

  ~SessionFixture() override { End(); }

  // Ends the client, and waits for the ends of scripts: to be called before what they use goes.
  void End() ABSL_LOCKS_EXCLUDED(mutex_) {
    client_ = nullptr;
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](int* num_running) { return *num_running == 0; }, &num_running_));
  }

  void Connect(const ConnectOptions& options = {}) {
    client_ = *Client::Connect(server_.target(), options);
  }

  // Lets the daemon open each session with `hello`, answer one request, and then do as `script`
  // says.
  void Play(const PeerFrame& hello, Script script) {
    PlayAll([this, hello, script](SessionPeer& peer) {
      const std::optional<PeerFrame> greeting = peer.Read();
      if (!greeting) return grpc::Status::OK;
      EXPECT_EQ(greeting->kind, PeerFrame::kHello);
      peer.Write({hello});
      const std::optional<PeerFrame> first = peer.Read();
      if (!first) return grpc::Status::OK;
      ++num_open_;  // before the answer, after which the test looks
      peer.Write({PeerRequest(*first).Answer()});
      return script(peer);
    });
  }

  // The same with a script that begins with the client's hello.
  void PlayAll(Script script) {
    server_.set_session([this, script](auto* context, TestServer::SessionStream* stream) {
      ++num_sessions_;
      AddRunning(1);
      SessionPeer peer(context, stream);
      const grpc::Status status = script(peer);
      AddRunning(-1);
      return status;
    });
  }

  // Makes calls until one goes through a session: the first ones do not wait for it.
  void AwaitSession() {
    const int known = num_open_;
    const absl::Time end = absl::Now() + kDefaultTimeout;
    while (num_open_ == known && absl::Now() < end) {
      ASSERT_TRUE(client_->Execute(ScaleOf({0})).ok());
    }
    ASSERT_GT(num_open_, known);
    num_calls_ = 0;
  }

  // Connects, plays and awaits the session.
  void Start(const PeerFrame& hello, Script script) {
    Play(hello, std::move(script));
    if (client_ == nullptr) Connect();
    AwaitSession();
  }

  static Request ScaleOf(const std::vector<float>& x) {
    const auto extent = static_cast<int64_t>(x.size());
    return {.invocations = {
                {.operator_name = "Scale", .inputs = {{"x", Tensor::Owning<float>({extent}, x)}}}}};
  }

  using Outcome = std::future<absl::StatusOr<Response>>;

  // Starts requests with the values first, first + 1, ...
  std::vector<Outcome> StartCalls(int count, int first = 0) {
    std::vector<Outcome> outcomes;
    for (int i = 0; i < count; ++i) {
      outcomes.push_back(client_->ExecuteAsync(ScaleOf({static_cast<float>(first + i)})));
    }
    return outcomes;
  }

  // Expects that each request got its own value back.
  static void ExpectValues(std::vector<Outcome>& outcomes, int first = 0) {
    for (size_t i = 0; i < outcomes.size(); ++i) {
      const absl::StatusOr<Response> response = outcomes[i].get();
      ASSERT_TRUE(response.ok()) << response.status();
      EXPECT_EQ((*response->results[0].values<float>())[0], static_cast<float>(first + i));
    }
  }

  // The value of a request of StartCalls.
  static float ValueOf(const v1::ExecuteRequest& request) {
    float value = -1;
    if (request.payloads_size() > 0) {
      std::memcpy(&value, request.payloads(0).data(), sizeof(value));
    }
    return value;
  }

  void AddRunning(int change) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    num_running_ += change;
  }

  absl::Mutex mutex_;
  int num_running_ ABSL_GUARDED_BY(mutex_) = 0;  // scripts
  std::atomic<int> num_calls_ = 0;               // of Execute
  std::atomic<int> num_sessions_ = 0;            // that were begun
  std::atomic<int> num_open_ = 0;                // that got a request
  TestServer server_;
  std::unique_ptr<Client> client_;
};

}  // namespace opserve
