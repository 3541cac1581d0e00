// What becomes of the requests of a session that ends before they are answered.

#include <algorithm>
#include <cstring>
#include <map>

#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "tests/await.h"
#include "tests/unit/client/session_fixture.h"

namespace opserve {
namespace {

using testing::Each;
using testing::Pair;

class SessionEndTest : public SessionFixture {};

Request Replacing(Request request) {
  request.replaced.push_back(
      {.tensor = ResidentTensor{.handle = "handle"}, .output = {.invocation = 0, .output = "out"}});
  return request;
}

TEST_F(SessionEndTest, WhatADaemonDidNotStartGoesByExecute) {
  constexpr int kCalls = 6;
  constexpr int kTaken = 3;
  constexpr int kPlaces = 5;  // one request is never sent
  absl::Mutex mutex;
  std::map<float, int> runs;
  const auto count = [&](const v1::ExecuteRequest& request) {
    absl::MutexLock lock(&mutex);
    ++runs[ValueOf(request)];
  };
  absl::Notification has_ended;
  absl::Notification all_started;
  Play(HelloFrame(kPlaces), [&](SessionPeer& peer) {
    if (num_sessions_ > 1) {
      peer.ReadToTheEnd();
      return grpc::Status::OK;
    }
    std::vector<PeerRequest> requests;
    for (int i = 0; i < kPlaces; ++i) requests.push_back(peer.ReadRequest());
    all_started.WaitForNotification();
    peer.Write({GoingAwayFrame(requests[kTaken - 1].number)});
    for (int i = 0; i < kTaken; ++i) {
      count(requests[i].message);
      peer.Write({requests[i].Answer()});
    }
    EXPECT_FALSE(peer.Read());  // it closes its side, as it has all answers
    EXPECT_FALSE(peer.IsCancelled());
    has_ended.Notify();
    return grpc::Status::OK;
  });
  Connect({.retry = {.max_attempts = 1}});  // it is no failure
  AwaitSession();
  server_.set_execute([&](auto* context, const auto& request, auto* response) {
    ++num_calls_;
    count(request);
    return TestServer::Echo(context, request, response);
  });

  std::vector<Outcome> outcomes = StartCalls(kCalls);
  all_started.Notify();

  ExpectValues(outcomes);
  has_ended.WaitForNotification();
  EXPECT_EQ(num_calls_, kCalls - kTaken);
  absl::MutexLock lock(&mutex);
  EXPECT_EQ(runs.size(), kCalls);
  EXPECT_THAT(runs, Each(Pair(testing::_, 1)));
  End();
}

TEST_F(SessionEndTest, AnotherSessionFollows) {
  struct Case {
    const char* name;
    std::function<grpc::Status(SessionPeer&)> end;
  };
  const Case kCases[] = {
      {"going away",
       [](SessionPeer& peer) {
         peer.Write({GoingAwayFrame(0)});
         peer.ReadToTheEnd();
         return grpc::Status::OK;
       }},
      {"a break",
       [](SessionPeer&) { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "broken"); }},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const int before = num_sessions_;
    Start(HelloFrame(), [&](SessionPeer& peer) {
      if (num_sessions_ == before + 1) return c.end(peer);
      peer.ReadToTheEnd();
      return grpc::Status::OK;
    });
    AwaitSession();
    EXPECT_EQ(num_sessions_, before + 2);
    End();
  }
}

TEST_F(SessionEndTest, ADaemonWithoutSessionsIsAskedOnce) {
  std::atomic<int> asked = 0;
  server_.set_session([&asked](auto*, auto*) {
    ++asked;
    return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "");
  });
  Connect();

  // Longer than the wait after another end.
  const absl::Time end = absl::Now() + absl::Milliseconds(250);
  while (absl::Now() < end) ASSERT_TRUE(client_->Execute(ScaleOf({1})).ok());

  EXPECT_EQ(asked, 1);
  End();
}

TEST_F(SessionEndTest, RequestsOfABrokenSessionAreRepeatedAsThoseOfBrokenCalls) {
  v1::ErrorDetail draining;
  draining.set_reason("draining");
  v1::StatusDetails details;
  details.add_details()->PackFrom(draining);
  const std::string detail = details.SerializeAsString();
  const Request pure = ScaleOf({1});
  const Request replacing = Replacing(pure);
  Request with_key = replacing;
  with_key.idempotency_key = "key";
  using grpc::StatusCode;
  struct Case {
    const char* name;
    Request request;
    grpc::Status end;
    absl::StatusCode code;
    int num_calls;
  };
  const Case kCases[] = {
      {"pure", pure, {StatusCode::UNAVAILABLE, "broken"}, absl::StatusCode::kOk, 1},
      {"with a key", with_key, {StatusCode::UNAVAILABLE, "broken"}, absl::StatusCode::kOk, 1},
      {"changes a tensor",
       replacing,
       {StatusCode::UNAVAILABLE, "broken"},
       absl::StatusCode::kOk,
       1},
      {"refused stream",
       replacing,
       {StatusCode::RESOURCE_EXHAUSTED, "full"},
       absl::StatusCode::kOk,
       1},
      {"drained stream",
       replacing,
       {StatusCode::UNAVAILABLE, "draining", detail},
       absl::StatusCode::kOk,
       1},
      {"no loss", pure, {StatusCode::INTERNAL, "a fault"}, absl::StatusCode::kInternal, 0},
      {"no answer", pure, grpc::Status::OK, absl::StatusCode::kInternal, 0},
  };
  for (const Case& c : kCases) {
    v1::RequestIdentity sent;
    v1::RequestIdentity repeated;
    Start(HelloFrame(), [&c, &sent](SessionPeer& peer) {
      sent = peer.ReadRequest().message.identity();
      return c.end;
    });
    server_.set_execute([&](auto* context, const auto& request, auto* response) {
      repeated = request.identity();
      ++num_calls_;
      return TestServer::Echo(context, request, response);
    });

    const absl::Status status = client_->Execute(c.request).status();

    EXPECT_EQ(status.code(), c.code) << c.name << ": " << status;
    EXPECT_EQ(num_calls_, c.num_calls) << c.name;
    End();
    // By it the daemon knows that the second one is the first one again.
    const bool has_identity = !c.request.replaced.empty() && c.request.idempotency_key.empty();
    EXPECT_EQ(sent.client().size(), has_identity ? 16u : 0u) << c.name;
    if (c.num_calls > 0) {
      EXPECT_EQ(repeated.SerializeAsString(), sent.SerializeAsString()) << c.name;
    }
  }
}

TEST_F(SessionEndTest, WhatWasNotSentIsRepeatedWhateverItIs) {
  absl::Notification both_started;
  Start(HelloFrame(1), [&](SessionPeer& peer) {
    peer.ReadRequest();
    both_started.WaitForNotification();
    return grpc::Status(grpc::StatusCode::INTERNAL, "a fault");
  });
  Outcome sent = client_->ExecuteAsync(ScaleOf({1}));
  Outcome waiting = client_->ExecuteAsync(Replacing(ScaleOf({2})));
  both_started.Notify();

  EXPECT_EQ(sent.get().status().code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(waiting.get().ok());
  EXPECT_EQ(num_calls_, 1);
  End();
}

TEST_F(SessionEndTest, DaemonsThatBreakTheProtocolAreLeft) {
  struct Case {
    const char* name;
    std::function<std::string(const PeerRequest&)> frames;  // as the answer to a request
    int num_answered = 0;
  };
  const auto of_kind = [](PeerFrame::Kind kind) {
    return [kind](const PeerRequest& request) {
      return BytesOf({.kind = kind, .number = request.number, .body = ""});
    };
  };
  const Case kCases[] = {
      {"of no request",
       [](const PeerRequest& request) {
         PeerFrame answer = request.Answer();
         ++answer.number;
         return BytesOf(answer);
       }},
      {"answered twice",
       [](const PeerRequest& request) {
         return BytesOf(request.Answer()) + BytesOf(request.Answer());
       },
       1},
      {"a part of no answer",
       [](const PeerRequest& request) {
         return BytesOf({.kind = PeerFrame::kPart, .number = request.number + 1, .body = "x"});
       }},
      {"a second hello", [](const PeerRequest&) { return BytesOf(HelloFrame()); }},
      {"a cut body",
       [](const PeerRequest& request) {
         std::string bytes = BytesOf(request.Answer());
         bytes.pop_back();
         return bytes;
       }},
      {"a cut header",
       [](const PeerRequest& request) { return BytesOf(request.Answer()) + std::string(5, '\0'); },
       1},
      {"an error without details",
       [](const PeerRequest& request) {
         return BytesOf({.kind = PeerFrame::kError, .number = request.number, .body = "\377"});
       }},
      {"a request", of_kind(PeerFrame::kRequest)},
      {"a cancel", of_kind(PeerFrame::kCancel)},
      {"a pong to no ping", of_kind(PeerFrame::kPong)},
      {"an unknown kind", of_kind(static_cast<PeerFrame::Kind>(99))},
  };
  constexpr int kCalls = 3;
  for (const Case& c : kCases) {
    const int before = num_sessions_;
    absl::Notification has_ended;
    Start(HelloFrame(kCalls), [&](SessionPeer& peer) {
      std::vector<PeerRequest> requests;
      for (int i = 0; i < kCalls; ++i) requests.push_back(peer.ReadRequest());
      peer.WriteBytes(c.frames(requests.back()));
      peer.ReadToTheEnd();
      EXPECT_TRUE(peer.IsCancelled()) << c.name;
      has_ended.Notify();
      return grpc::Status::OK;
    });
    std::vector<Outcome> outcomes = StartCalls(kCalls);

    int num_answered = 0;
    for (Outcome& outcome : outcomes) {
      const absl::Status status = outcome.get().status();
      num_answered += status.ok() ? 1 : 0;
      EXPECT_TRUE(status.ok() || absl::IsInternal(status)) << c.name << ": " << status;
    }
    EXPECT_EQ(num_answered, c.num_answered) << c.name;
    has_ended.WaitForNotification();
    EXPECT_TRUE(client_->Execute(ScaleOf({1})).ok()) << c.name;
    EXPECT_EQ(num_calls_, 1) << c.name;
    EXPECT_EQ(num_sessions_, before + 1) << c.name;
    End();
  }
}

TEST_F(SessionEndTest, ABadBeginningCostsNoRequest) {
  v1::SessionHello no_version;
  no_version.mutable_limits()->set_max_requests(1);
  v1::SessionHello no_requests;
  no_requests.set_version(1);
  struct Case {
    const char* name;
    PeerFrame first;
  };
  const Case kCases[] = {
      {"ping", {.kind = PeerFrame::kPing}},
      {"going away", GoingAwayFrame(0)},
      {"no hello", {.kind = PeerFrame::kHello, .body = "\377"}},
      {"no version", {.kind = PeerFrame::kHello, .body = no_version.SerializeAsString()}},
      {"no requests", {.kind = PeerFrame::kHello, .body = no_requests.SerializeAsString()}},
  };
  for (const Case& c : kCases) {
    absl::Notification has_ended;
    PlayAll([&](SessionPeer& peer) {
      peer.Write({c.first});
      peer.ReadToTheEnd();
      has_ended.Notify();
      return grpc::Status::OK;
    });
    Connect();

    while (!has_ended.HasBeenNotified()) {
      ASSERT_TRUE(client_->Execute(ScaleOf({1})).ok()) << c.name;
    }
    EXPECT_TRUE(client_->Execute(ScaleOf({1})).ok()) << c.name;
    End();
  }
}

TEST_F(SessionEndTest, TheClientsEndCancelsRequestsWhereverTheyAre) {
  constexpr int kPlaces = 4;
  constexpr int kCalls = 10;
  absl::Notification all_read;
  Start(HelloFrame(kPlaces), [&](SessionPeer& peer) {
    for (int i = 0; i < kPlaces; ++i) peer.ReadRequest();
    all_read.Notify();
    peer.ReadToTheEnd();
    return grpc::Status::OK;
  });
  const std::vector<float> borrowed(100'000);
  Request request = ScaleOf({1});
  request.invocations[0].inputs.push_back({"y", Tensor::Of<float>({100'000}, borrowed)});
  std::vector<absl::StatusCode> codes;
  for (int i = 0; i < kCalls; ++i) {
    client_->ExecuteAsync(request, [&](absl::StatusOr<Response> response) {
      codes.push_back(response.status().code());
    });
  }
  all_read.WaitForNotification();

  client_ = nullptr;

  EXPECT_EQ(codes, std::vector(kCalls, absl::StatusCode::kCancelled));
  EXPECT_EQ(num_calls_, 0);
}

// Each session meets the next of these daemons, those after the last one that again.
TEST_F(SessionEndTest, EachDaemonThatProbesMeetHasASession) {
  struct Case {
    const char* name;
    std::vector<std::string> daemons;
    int kept;
    int sessions;  // until as many probes in a row as are kept have met nothing new
  };
  const Case kCases[] = {
      {"one daemon", {"one", "one"}, 1, 2},
      {"two daemons", {"one", "other"}, 2, 4},
      {"three daemons", {"one", "two", "one", "three", "two", "one", "three"}, 3, 7},
      {"a probed one without a name", {"one", ""}, 1, 2},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    num_sessions_ = 0;
    absl::Mutex mutex;
    std::map<std::string, int> requests;
    PlayAll([&](SessionPeer& peer) {
      const size_t place = std::min<size_t>(num_sessions_, c.daemons.size()) - 1;
      EXPECT_TRUE(peer.Read());
      peer.Write({HelloFrame(1000, 1 << 20, c.daemons[place])});
      while (const std::optional<PeerFrame> frame = peer.Read()) {
        {
          const absl::MutexLock lock(&mutex);
          ++requests[c.daemons[place]];
        }
        peer.Write({PeerRequest(*frame).Answer()});
      }
      EXPECT_FALSE(peer.IsCancelled() && client_ != nullptr);
      return grpc::Status::OK;
    });
    Connect();
    EXPECT_TRUE(Await([&] {
      EXPECT_TRUE(client_->Execute(ScaleOf({1})).ok());
      return num_sessions_ == c.sessions;
    }));
    {
      const absl::MutexLock lock(&mutex);
      requests.clear();
    }
    num_calls_ = 0;
    constexpr int kCalls = 60;
    for (int i = 0; i < kCalls; ++i) EXPECT_TRUE(client_->Execute(ScaleOf({1})).ok());
    EXPECT_EQ(num_calls_, 0);
    EXPECT_EQ(num_sessions_, c.sessions);
    {
      const absl::MutexLock lock(&mutex);
      EXPECT_EQ(requests.size(), static_cast<size_t>(c.kept));
      for (const auto& [daemon, count] : requests) EXPECT_EQ(count, kCalls / c.kept) << daemon;
    }
    End();
  }
}

// While it has another one.
TEST_F(SessionEndTest, ADaemonThatCannotServeIsLeft) {
  num_sessions_ = 0;
  std::atomic<bool> is_left = false;
  std::atomic<int> refused = 0;
  PlayAll([&](SessionPeer& peer) {
    const bool serves = num_sessions_ == 1;
    EXPECT_TRUE(peer.Read());
    peer.Write({HelloFrame(1000, 1 << 20, serves ? "one" : "other")});
    int refused_here = 0;
    while (const std::optional<PeerFrame> frame = peer.Read()) {
      if (!serves) ++refused, ++refused_here;
      peer.Write({serves ? PeerRequest(*frame).Answer()
                         : ErrorFrame(frame->number, grpc::UNAVAILABLE, "no device is ready")});
    }
    if (refused_here > 0) is_left = true;
    return grpc::Status::OK;
  });
  Connect();
  EXPECT_TRUE(Await([&] {
    EXPECT_TRUE(client_->Execute(ScaleOf({1})).ok());  // a refused one is repeated
    return is_left.load();
  }));
  num_calls_ = 0;
  const int before = refused;
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(client_->Execute(ScaleOf({1})).ok());
  EXPECT_EQ(refused, before);
  EXPECT_EQ(num_calls_, 0);
}

TEST_F(SessionEndTest, TheClientMayEndAtAnyMomentOfTheBeginning) {
  Play(HelloFrame(), [](SessionPeer& peer) {
    peer.ReadToTheEnd();
    return grpc::Status::OK;
  });
  for (int i = 0; i < 20; ++i) {
    Connect();
    std::vector<Outcome> outcomes = StartCalls(i % 4);
    client_ = nullptr;
    for (Outcome& outcome : outcomes) outcome.wait();
  }
}

}  // namespace
}  // namespace opserve
