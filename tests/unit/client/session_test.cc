// How a client's requests travel through a session.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <optional>

#include "gmock/gmock.h"
#include "tests/await.h"
#include "tests/unit/client/session_fixture.h"

namespace opserve {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Gt;
using testing::Le;

class SessionTest : public SessionFixture {};

// Answers requests in their order until the client sends no more.
grpc::Status AnswerAll(SessionPeer& peer) {
  while (const std::optional<PeerFrame> frame = peer.Read()) {
    if (frame->kind == PeerFrame::kRequest) peer.Write({PeerRequest(*frame).Answer()});
  }
  return grpc::Status::OK;
}

TEST_F(SessionTest, SaysHelloFirstAndNothingElseBeforeTheDaemonDoes) {
  std::promise<PeerFrame> first;
  PlayAll([&](SessionPeer& peer) {
    first.set_value(peer.Read().value_or(PeerFrame{.kind = PeerFrame::kPing}));
    server_.WaitForLetGo();
    EXPECT_EQ(peer.frames_left(), 0u);
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "enough");
  });
  Connect();

  for (int i = 0; i < 3; ++i) EXPECT_TRUE(client_->Execute(ScaleOf({1})).ok());

  const PeerFrame hello = first.get_future().get();
  EXPECT_EQ(hello.kind, PeerFrame::kHello);
  EXPECT_EQ(hello.number, 0u);
  v1::SessionHello message;
  ASSERT_TRUE(message.ParseFromString(hello.body));
  EXPECT_EQ(message.version(), 1u);
  EXPECT_FALSE(message.build().empty());
  EXPECT_EQ(num_calls_, 3);
  server_.LetGo();
  End();
}

TEST_F(SessionTest, CarriesRequestsOfEveryKindOfCall) {
  Start(HelloFrame(), &AnswerAll);

  EXPECT_TRUE(client_->Execute(ScaleOf({1})).ok());
  EXPECT_TRUE(client_->Execute(ScaleOf({1}).invocations[0]).ok());
  EXPECT_TRUE(client_->ExecuteAsync(ScaleOf({1})).get().ok());
  absl::Notification done;
  client_->ExecuteAsync(ScaleOf({1}), [&](absl::StatusOr<Response> response) {
    EXPECT_TRUE(response.ok()) << response.status();
    done.Notify();
  });
  done.WaitForNotification();

  EXPECT_EQ(num_calls_, 0);
  EXPECT_EQ(num_sessions_, 1);
  End();
}

TEST_F(SessionTest, IsLeftOutForAClientThatDoesNotWantOne) {
  Play(HelloFrame(), &AnswerAll);
  client_ = *Client::Connect(server_.target(), {.session = false});

  for (int i = 0; i < 3; ++i) EXPECT_TRUE(client_->ExecuteAsync(ScaleOf({1})).get().ok());

  client_ = nullptr;
  EXPECT_EQ(num_sessions_, 0);
}

TEST_F(SessionTest, IsLeftOutForAClientWithOneRequest) {
  Play(HelloFrame(), &AnswerAll);
  Connect();

  EXPECT_TRUE(client_->Execute(ScaleOf({1})).ok());

  client_ = nullptr;
  EXPECT_EQ(num_sessions_, 0);
}

// Until it has one to each, requests are calls, which go round by themselves.
TEST_F(SessionTest, EachDaemonOfATargetHasOne) {
  TestServer other;
  std::atomic<int> requests[2] = {};
  const auto play = [&](int place, const char* name) {
    return
        [&requests, place, name](grpc::ServerContext* context, TestServer::SessionStream* stream) {
          SessionPeer peer(context, stream);
          EXPECT_TRUE(peer.Read());
          peer.Write({HelloFrame(1000, 1 << 20, name)});
          while (const std::optional<PeerFrame> frame = peer.Read()) {
            ++requests[place];
            peer.Write({PeerRequest(*frame).Answer()});
          }
          return grpc::Status::OK;
        };
  };
  server_.set_session(play(0, "one"));
  other.set_session(play(1, "other"));
  client_ = *Client::Connect(server_.target() + "," + other.target());

  const auto call = [&] { EXPECT_TRUE(client_->Execute(ScaleOf({1})).ok()); };
  EXPECT_TRUE(Await([&] {
    call();
    return requests[0] > 0 && requests[1] > 0;
  }));
  const int before[] = {requests[0], requests[1]};
  for (int i = 0; i < 20; ++i) call();
  EXPECT_EQ(requests[0] - before[0], 10);
  EXPECT_EQ(requests[1] - before[1], 10);

  client_ = nullptr;
}

TEST_F(SessionTest, SaysTheTimeLeftAndTheTrace) {
  struct Case {
    const char* name;
    absl::Duration timeout;
    std::string traceparent;
    testing::Matcher<uint64_t> timeout_us;
    std::string sent_traceparent;
  };
  const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const Case kCases[] = {
      {"both", absl::Seconds(20), trace, AllOf(Gt(1'000'000u), Le(20'000'000u)), trace},
      {"no timeout", absl::InfiniteDuration(), "", 0u, ""},
      {"no trace", absl::Seconds(20), "not one", Gt(1'000'000u), ""},
      {"a long one", absl::Seconds(20), std::string(257, '0'), Gt(1'000'000u), ""},
  };
  std::string traceparent;
  Connect({.traceparent = [&traceparent] { return traceparent; }});
  absl::Mutex mutex;
  std::vector<PeerRequest> seen;
  Start(HelloFrame(), [&](SessionPeer& peer) {
    while (const std::optional<PeerFrame> frame = peer.Read()) {
      const PeerRequest request(*frame);
      {
        absl::MutexLock lock(&mutex);
        seen.push_back(request);
      }
      peer.Write({request.Answer()});
    }
    return grpc::Status::OK;
  });
  for (const Case& c : kCases) {
    traceparent = c.traceparent;
    Request scale = ScaleOf({1});
    scale.timeout = c.timeout;
    EXPECT_TRUE(client_->Execute(scale).ok()) << c.name;

    absl::MutexLock lock(&mutex);
    ASSERT_FALSE(seen.empty()) << c.name;
    EXPECT_THAT(seen.back().timeout_us, c.timeout_us) << c.name;
    EXPECT_EQ(seen.back().traceparent, c.sent_traceparent) << c.name;
  }
  End();
}

TEST_F(SessionTest, TakesAnswersInAnyOrder) {
  constexpr int kCalls = 20;
  Start(HelloFrame(), [](SessionPeer& peer) {
    std::vector<PeerFrame> answers;
    for (int i = 0; i < kCalls; ++i) answers.push_back(peer.ReadRequest().Answer());
    std::reverse(answers.begin(), answers.end());
    peer.Write(answers);
    return AnswerAll(peer);
  });

  std::vector<Outcome> outcomes = StartCalls(kCalls);

  ExpectValues(outcomes);
  EXPECT_EQ(num_calls_, 0);
}

// Requests that wait for room go together, as far as a message's 64 KiB allow.
TEST_F(SessionTest, SendsWhatIsReadyInOneMessage) {
  struct Case {
    const char* name;
    size_t values;  // of each request
    std::vector<size_t> batches;
  };
  const Case kCases[] = {
      {"small", 1, {4}},
      {"20 KB", 5000, {3, 1}},
      {"larger than a batch", 20000, {1, 1, 1, 1}},
  };
  constexpr int kPlaces = 4;
  for (const Case& c : kCases) {
    absl::Notification all_started;
    std::promise<std::vector<size_t>> batches;
    Start(HelloFrame(kPlaces), [&](SessionPeer& peer) {
      std::vector<PeerFrame> answers;
      for (int i = 0; i < kPlaces; ++i) answers.push_back(peer.ReadRequest().Answer());
      all_started.WaitForNotification();
      peer.Write(answers);
      std::vector<size_t> sizes;
      answers.clear();
      while (answers.size() < kPlaces) {
        const size_t before = answers.size();
        do {
          answers.push_back(peer.ReadRequest().Answer());
        } while (peer.frames_left() > 0);
        sizes.push_back(answers.size() - before);
      }
      peer.Write(answers);
      batches.set_value(sizes);
      return AnswerAll(peer);
    });
    std::vector<Outcome> outcomes;
    for (int i = 0; i < 2 * kPlaces; ++i) {
      outcomes.push_back(
          client_->ExecuteAsync(ScaleOf(std::vector<float>(c.values, static_cast<float>(i)))));
    }
    all_started.Notify();

    ExpectValues(outcomes);
    EXPECT_EQ(batches.get_future().get(), c.batches) << c.name;
    End();
  }
}

// While the daemon has yet to read two messages, further requests wait for one another.
TEST_F(SessionTest, RequestsTravelTogetherToABusyDaemon) {
  using Release = std::function<std::vector<PeerFrame>(const std::vector<PeerRequest>&)>;
  struct Case {
    const char* name;
    Release release;  // what the daemon says once it has read some more
    size_t values = 1;
    size_t in_first = 5;  // of the requests that waited, those in the first message
  };
  const Case kCases[] = {
      {"a pong",
       [](const auto&) { return std::vector<PeerFrame>{{.kind = PeerFrame::kPong, .number = 1}}; }},
      {"an answer", [](const auto& requests) { return std::vector{requests[1].Answer()}; }},
      {"as much as a message holds", [](const auto&) { return std::vector<PeerFrame>(); }, 5000, 3},
  };
  constexpr int kFirst = 3;  // the first one alone, so that it needs no ping
  constexpr int kMore = 5;
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    std::vector<std::promise<void>> read(kFirst);
    absl::Notification all_started;
    std::promise<size_t> in_first;
    Start(HelloFrame(), [&](SessionPeer& peer) {
      peer.IgnorePings();
      std::vector<PeerRequest> requests;
      for (int i = 0; i < kFirst; ++i) {
        requests.push_back(peer.ReadRequest());
        read[static_cast<size_t>(i)].set_value();
      }
      all_started.WaitForNotification();
      const std::vector<PeerFrame> said = c.release(requests);
      if (!said.empty()) peer.Write(said);
      requests.push_back(peer.ReadRequest());
      in_first.set_value(1 + peer.frames_left());
      return AnswerAll(peer);
    });
    std::vector<Outcome> outcomes;
    const auto start = [&](int i) {
      outcomes.push_back(
          client_->ExecuteAsync(ScaleOf(std::vector<float>(c.values, static_cast<float>(i)))));
    };
    for (int i = 0; i < kFirst; ++i) {
      start(i);
      read[static_cast<size_t>(i)].get_future().wait();
    }
    for (int i = 0; i < kMore; ++i) start(kFirst + i);
    all_started.Notify();
    EXPECT_EQ(in_first.get_future().get(), c.in_first);
    End();
  }
}

TEST_F(SessionTest, KeepsToTheDaemonsNumberOfRequests) {
  constexpr int kPlaces = 3;
  constexpr int kCalls = 100;
  std::atomic<int> most = 0;
  Start(HelloFrame(kPlaces), [&most](SessionPeer& peer) {
    std::vector<PeerRequest> open;
    for (int i = 0; i < kCalls; ++i) {
      open.push_back(peer.ReadRequest());
      most = std::max<int>(most, open.size() + peer.frames_left());
      // The last ones of a window, so that others wait in front of it.
      if (open.size() < kPlaces && i + 1 < kCalls) continue;
      peer.Write({open.back().Answer()});
      open.pop_back();
    }
    for (const PeerRequest& request : open) peer.Write({request.Answer()});
    return AnswerAll(peer);
  });

  std::vector<Outcome> outcomes = StartCalls(kCalls);

  ExpectValues(outcomes);
  EXPECT_EQ(most, kPlaces);
  EXPECT_EQ(num_calls_, 0);
  End();
}

TEST_F(SessionTest, LeavesLargerRequestsToExecute) {
  constexpr uint64_t kMostBytes = 10'000;
  Start(HelloFrame(10, kMostBytes), &AnswerAll);

  EXPECT_TRUE(client_->Execute(ScaleOf(std::vector<float>(2000, 1))).ok());
  EXPECT_EQ(num_calls_, 0);
  EXPECT_TRUE(client_->Execute(ScaleOf(std::vector<float>(2600, 1))).ok());
  EXPECT_EQ(num_calls_, 1);
  EXPECT_TRUE(client_->ExecuteAsync(ScaleOf(std::vector<float>(2600, 1))).get().ok());
  EXPECT_EQ(num_calls_, 2);
}

TEST_F(SessionTest, RefersToLargeBytesUntilTheyAreSent) {
  Start(HelloFrame(), &AnswerAll);
  std::vector<float> x(100'000, 1);
  Request request = ScaleOf({});
  request.invocations[0].inputs[0].value = Tensor::Of<float>({100'000}, x);
  for (int i = 0; i < 20; ++i) {
    std::fill(x.begin(), x.end(), static_cast<float>(i));
    const absl::StatusOr<Response> response = client_->Execute(request);
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_TRUE(*response->results[0].values<float>() == absl::MakeConstSpan(x)) << i;
  }
  EXPECT_EQ(num_calls_, 0);
}

TEST_F(SessionTest, ErrorsAreThoseOfTheDaemon) {
  v1::ErrorDetail detail;
  detail.set_reason("queue_full");
  detail.set_retry_pushback_ms(-1);
  Start(HelloFrame(), [&detail](SessionPeer& peer) {
    const uint64_t number = peer.ReadRequest().number;
    peer.Write({ErrorFrame(number, grpc::StatusCode::RESOURCE_EXHAUSTED, "full", detail)});
    return AnswerAll(peer);
  });

  const absl::Status status = client_->Execute(ScaleOf({1})).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "full");
  ASSERT_TRUE(ErrorDetailOf(status));
  EXPECT_EQ(ErrorDetailOf(status)->reason(), "queue_full");
  EXPECT_EQ(RetryPushbackOf(status), absl::InfiniteDuration());
  EXPECT_EQ(num_calls_, 0);
  EXPECT_TRUE(client_->Execute(ScaleOf({1})).ok());
  EXPECT_EQ(num_calls_, 0);
  End();
}

TEST_F(SessionTest, RefusalsAreRepeatedByExecute) {
  v1::ErrorDetail detail;
  detail.set_reason("queue_full");
  detail.set_retry_pushback_ms(1);
  Start(HelloFrame(), [&detail](SessionPeer& peer) {
    const uint64_t number = peer.ReadRequest().number;
    peer.Write({ErrorFrame(number, grpc::StatusCode::RESOURCE_EXHAUSTED, "full", detail)});
    return AnswerAll(peer);
  });

  EXPECT_TRUE(client_->Execute(ScaleOf({1})).ok());

  EXPECT_EQ(num_calls_, 1);
  End();
}

TEST_F(SessionTest, PingsAreAnsweredBeforeRequests) {
  absl::Notification both_started;
  std::promise<std::vector<PeerFrame>> seen;
  Start(HelloFrame(1), [&](SessionPeer& peer) {
    const PeerRequest first = peer.ReadRequest();
    both_started.WaitForNotification();
    peer.Write({{.kind = PeerFrame::kPing, .number = 7}, first.Answer()});
    std::vector<PeerFrame> frames;
    for (int i = 0; i < 2; ++i) frames.push_back(peer.Read().value_or(PeerFrame()));
    peer.Write({PeerRequest(frames[1]).Answer()});
    seen.set_value(frames);
    return AnswerAll(peer);
  });
  std::vector<Outcome> outcomes = StartCalls(2);
  both_started.Notify();

  ExpectValues(outcomes);
  const std::vector<PeerFrame> frames = seen.get_future().get();
  EXPECT_EQ(frames[0].kind, PeerFrame::kPong);
  EXPECT_EQ(frames[0].number, 7u);
  EXPECT_EQ(frames[1].kind, PeerFrame::kRequest);
  End();
}

TEST_F(SessionTest, ARequestThatWaitsForRoomIsCancelledWithoutTheDaemon) {
  absl::Notification cancelled;
  std::promise<std::vector<float>> seen;
  Start(HelloFrame(1), [&](SessionPeer& peer) {
    const PeerRequest first = peer.ReadRequest();
    cancelled.WaitForNotification();
    peer.Write({first.Answer()});
    const PeerRequest last = peer.ReadRequest();
    peer.Write({last.Answer()});
    seen.set_value({ValueOf(first.message), ValueOf(last.message)});
    return AnswerAll(peer);
  });
  std::vector<Outcome> outcomes = StartCalls(1);
  std::promise<absl::Status> waiting;
  const CallHandle handle = client_->ExecuteAsync(
      ScaleOf({1}),
      [&](absl::StatusOr<Response> response) { waiting.set_value(response.status()); });
  std::vector<Outcome> last = StartCalls(1, 2);

  handle.Cancel();
  handle.Cancel();

  EXPECT_EQ(waiting.get_future().get().code(), absl::StatusCode::kCancelled);
  cancelled.Notify();
  ExpectValues(outcomes);
  ExpectValues(last, 2);
  EXPECT_THAT(seen.get_future().get(), ElementsAre(0, 2));
  EXPECT_EQ(num_calls_, 0);
  End();
}

TEST_F(SessionTest, ARequestThatWasSentIsCancelledByTheDaemon) {
  absl::Notification was_read;
  Start(HelloFrame(), [&](SessionPeer& peer) {
    const PeerRequest request = peer.ReadRequest();
    was_read.Notify();
    const PeerFrame cancel = peer.Read().value_or(PeerFrame());
    EXPECT_EQ(cancel.kind, PeerFrame::kCancel);
    EXPECT_EQ(cancel.number, request.number);
    EXPECT_EQ(cancel.body, "");
    peer.Write({ErrorFrame(cancel.number, grpc::StatusCode::CANCELLED, "as asked")});
    return AnswerAll(peer);
  });
  std::promise<absl::Status> outcome;
  const CallHandle handle = client_->ExecuteAsync(
      ScaleOf({1}),
      [&](absl::StatusOr<Response> response) { outcome.set_value(response.status()); });
  was_read.WaitForNotification();

  handle.Cancel();

  const absl::Status status = outcome.get_future().get();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(status.message(), "as asked");
  EXPECT_EQ(num_calls_, 0);
  End();
}

// The daemon should have ended it; a session goes on where it does not.
TEST_F(SessionTest, EndsOverdueRequestsItself) {
  constexpr float kLast = 99;
  std::atomic<int> sent = 0;
  std::atomic<int> cancelled = 0;
  Start(HelloFrame(2), [&](SessionPeer& peer) {
    std::map<uint64_t, PeerFrame> late;
    while (const std::optional<PeerFrame> frame = peer.Read()) {
      if (frame->kind == PeerFrame::kCancel) {
        ++cancelled;
        peer.Write({late[frame->number]});
        continue;
      }
      const PeerRequest request(*frame);
      if (ValueOf(request.message) == kLast) {
        peer.Write({request.Answer()});
      } else {
        ++sent;
        late[request.number] = request.Answer();
      }
    }
    return grpc::Status::OK;
  });
  std::vector<Outcome> outcomes;
  for (int i = 0; i < 3; ++i) {  // the last one waits for room
    Request request = ScaleOf({1});
    request.timeout = absl::Milliseconds(20);
    outcomes.push_back(client_->ExecuteAsync(request));
  }

  for (Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.get().status().code(), absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_TRUE(client_->Execute(ScaleOf({kLast})).ok());
  EXPECT_LE(sent, 2);
  EXPECT_EQ(cancelled, sent);
  EXPECT_EQ(num_calls_, 0);
  EXPECT_EQ(num_sessions_, 1);
  End();
}

TEST_F(SessionTest, ACallbackMayMakeABlockingCall) {
  Start(HelloFrame(), &AnswerAll);
  std::promise<absl::Status> outcome;

  client_->ExecuteAsync(ScaleOf({1}), [&](absl::StatusOr<Response>) {
    outcome.set_value(client_->Execute(ScaleOf({2})).status());
  });

  EXPECT_TRUE(outcome.get_future().get().ok());
  EXPECT_EQ(num_calls_, 1);
  End();
}

TEST_F(SessionTest, ManyThreadsShareIt) {
  constexpr int kThreads = 8;
  constexpr int kCalls = 200;
  Start(HelloFrame(5), &AnswerAll);
  std::vector<std::future<void>> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.push_back(std::async(std::launch::async, [this, i] {
      for (int j = 0; j < kCalls; ++j) {
        const float value = static_cast<float>(1000 * i + j);
        const absl::StatusOr<Response> response = client_->Execute(ScaleOf({value}));
        ASSERT_TRUE(response.ok()) << response.status();
        ASSERT_THAT(*response->results[0].values<float>(), ElementsAre(value));
      }
    }));
  }
  for (std::future<void>& thread : threads) thread.get();
  EXPECT_EQ(num_calls_, 0);
}

}  // namespace
}  // namespace opserve
