// How clients repeat calls, against servers that refuse as they are told.

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/cpp/admin_client.h"
#include "client/cpp/client.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/integration/scripted_server.h"
#include "tests/unit/client/test_server.h"

namespace opserve {
namespace {

using testing::Each;
using testing::HasSubstr;

// A way to call Execute.
struct Way {
  const char* name;
  absl::StatusOr<Response> (*execute)(Client& client, const Request& request);
};

absl::StatusOr<Response> ExecuteBlocking(Client& client, const Request& request) {
  return client.Execute(request);
}

absl::StatusOr<Response> ExecuteAsync(Client& client, const Request& request) {
  return client.ExecuteAsync(request).get();
}

class RetryTest : public testing::TestWithParam<Way> {
 protected:
  absl::StatusOr<Response> Execute(Client& client, const Request& request) {
    return GetParam().execute(client, request);
  }

  std::unique_ptr<Client> Connect(const RetryOptions& retry = {.budget = 1000}) {
    return *Client::Connect(server_.target(), {.retry = retry});
  }

  ScriptedServer server_;
};

INSTANTIATE_TEST_SUITE_P(Ways, RetryTest,
                         testing::Values(Way{"Blocking", &ExecuteBlocking},
                                         Way{"Async", &ExecuteAsync}),
                         [](const auto& info) { return std::string(info.param.name); });

// Refuses the first `refusals` calls.
ScriptedServer::Script Refuse(int refusals, grpc::StatusCode code,
                              const std::string& pushback = "") {
  return [=](int call, grpc::ServerContext* context) {
    if (call > refusals) return grpc::Status::OK;
    if (!pushback.empty()) context->AddTrailingMetadata("grpc-retry-pushback-ms", pushback);
    return grpc::Status(code, "refused");
  };
}

constexpr int kAlways = 1'000'000;

TEST_P(RetryTest, RefusalsThatPassAreNotSeen) {
  for (const auto code : {grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::RESOURCE_EXHAUSTED}) {
    const int before = server_.num_calls();
    server_.set_script(Refuse(before + 2, code));

    const auto response = Execute(*Connect(), SmallRequest());

    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_THAT(*response->results[0].values<float>(), testing::ElementsAre(1, 2));
    EXPECT_EQ(server_.num_calls(), before + 3);
  }
}

TEST_P(RetryTest, OtherErrorsAreSeenAtOnce) {
  for (const auto code : {grpc::StatusCode::CANCELLED, grpc::StatusCode::DEADLINE_EXCEEDED,
                          grpc::StatusCode::INVALID_ARGUMENT, grpc::StatusCode::FAILED_PRECONDITION,
                          grpc::StatusCode::INTERNAL, grpc::StatusCode::UNAUTHENTICATED,
                          grpc::StatusCode::PERMISSION_DENIED, grpc::StatusCode::DATA_LOSS}) {
    const int before = server_.num_calls();
    server_.set_script(Refuse(kAlways, code));

    const absl::Status status = Execute(*Connect(), SmallRequest()).status();

    EXPECT_EQ(status.code(), static_cast<absl::StatusCode>(code));
    EXPECT_EQ(status.message(), "refused");
    EXPECT_EQ(server_.num_calls(), before + 1);
  }
}

TEST_P(RetryTest, TheLastErrorTellsHowManyAttemptsThereWere) {
  server_.set_script(Refuse(kAlways, grpc::StatusCode::UNAVAILABLE));

  const absl::Status status = Execute(*Connect(), SmallRequest()).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "refused (after 5 attempts)");
  EXPECT_EQ(server_.num_calls(), 5);
}

TEST_P(RetryTest, WaitsForADaemonThatIsAway) {
  const TemporaryDirectory directory;
  const std::string target = "unix:" + directory.File("socket");
  absl::Notification waits[2];
  int number = 0;
  const auto client = *Client::Connect(
      target, {.retry = {.waiting = [&](const absl::Status&) { waits[number].Notify(); }}});
  // Before its first start, and between two.
  for (number = 0; number < 2; ++number) {
    absl::Status status;
    std::thread caller([&] { status = Execute(*client, SmallRequest()).status(); });
    waits[number].WaitForNotification();
    ScriptedServer server(target);
    caller.join();
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(server.num_calls(), 1);
  }
}

TEST_P(RetryTest, WaitsAsLongAsTheDaemonAsks) {
  server_.set_script(Refuse(2, grpc::StatusCode::RESOURCE_EXHAUSTED, "120"));

  ASSERT_TRUE(Execute(*Connect(), SmallRequest()).ok());

  const std::vector<ScriptedServer::Call> calls = server_.calls();
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_GE(calls[1].arrival - calls[0].arrival, absl::Milliseconds(120));
  EXPECT_GE(calls[2].arrival - calls[1].arrival, absl::Milliseconds(120));
}

TEST_P(RetryTest, ADaemonMayForbidIt) {
  for (const char* pushback : {"-1", "soon"}) {
    const int before = server_.num_calls();
    server_.set_script(Refuse(kAlways, grpc::StatusCode::RESOURCE_EXHAUSTED, pushback));

    EXPECT_EQ(Execute(*Connect(), SmallRequest()).status().message(), "refused");
    EXPECT_EQ(server_.num_calls(), before + 1) << pushback;
  }
}

TEST_P(RetryTest, WhatCannotBeginBeforeTheDeadlineIsNotWaitedFor) {
  server_.set_script(Refuse(kAlways, grpc::StatusCode::UNAVAILABLE, "3600000"));
  Request request = SmallRequest();
  request.timeout = absl::Minutes(5);

  const absl::Status status = Execute(*Connect(), request).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "refused (after 1 attempt; the next would be beyond the deadline)");
  EXPECT_EQ(RetryPushbackOf(status), absl::Hours(1));
  EXPECT_EQ(server_.num_calls(), 1);
}

TEST_P(RetryTest, TheDeadlineIsThatOfAllAttempts) {
  std::vector<absl::Time> deadlines;
  server_.set_script([&deadlines](int call, grpc::ServerContext* context) {
    deadlines.push_back(absl::FromChrono(context->deadline()));
    context->AddTrailingMetadata("grpc-retry-pushback-ms", "2000");
    return call < 3 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "refused") : grpc::Status::OK;
  });
  Request request = SmallRequest();
  request.timeout = absl::Minutes(1);
  // gRPC rounds what is left up, and the server counts it from the arrival; but no attempt, the
  // last of which comes 4 seconds after the first, has the whole time again.
  const absl::Time latest = absl::Now() + request.timeout + absl::Milliseconds(2500);

  ASSERT_TRUE(Execute(*Connect(), request).ok());

  EXPECT_THAT(deadlines, Each(testing::Le(latest)));
}

TEST_P(RetryTest, ABudgetBoundsWhatAllCallsRepeat) {
  server_.set_script(Refuse(kAlways, grpc::StatusCode::RESOURCE_EXHAUSTED));
  const auto client = Connect({.budget = 4});
  absl::Status last;

  for (int i = 0; i < 20; ++i) last = Execute(*client, SmallRequest()).status();

  EXPECT_EQ(server_.num_calls(), 20 + 3);  // 4, 3 and 2 of 4 were at least half
  EXPECT_EQ(last.message(), "refused (after 1 attempt; too many calls failed to try more)");
}

TEST_P(RetryTest, ItCanBeTurnedOff) {
  server_.set_script(Refuse(kAlways, grpc::StatusCode::UNAVAILABLE));

  EXPECT_EQ(Execute(*Connect({.max_attempts = 1}), SmallRequest()).status().message(), "refused");
  EXPECT_EQ(server_.num_calls(), 1);
}

TEST_P(RetryTest, AttemptsShareTheBytes) {
  constexpr int64_t kCount = 1 << 20;
  std::vector<float> elements(kCount);
  for (int64_t i = 0; i < kCount; ++i) elements[i] = static_cast<float>(i % 1009);
  const auto owner = std::make_shared<std::vector<float>>(elements);
  const absl::string_view bytes(reinterpret_cast<const char*>(owner->data()), kCount * 4);
  std::vector<long> holders;
  server_.set_script([&](int call, grpc::ServerContext*) {
    holders.push_back(owner.use_count());
    return call < 4 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "refused") : grpc::Status::OK;
  });
  const Request request = RequestOf(Tensor::FromBytes(
      kFloat, {kCount},
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()), owner));

  const auto response = Execute(*Connect(), request);

  ASSERT_TRUE(response.ok()) << response.status();
  const std::vector<ScriptedServer::Call> calls = server_.calls();
  ASSERT_EQ(calls.size(), 4u);
  for (const ScriptedServer::Call& call : calls) {
    ASSERT_EQ(call.payloads.size(), 1u);
    EXPECT_TRUE(call.payloads[0] == bytes);
  }
  // The test, the request and one message, whatever the attempt.
  EXPECT_THAT(holders, Each(3));
}

TEST_P(RetryTest, BorrowedBytesAreFreeAfterTheLastAttempt) {
  constexpr int64_t kCount = 1 << 20;
  const auto client = Connect();
  std::vector<float> elements(kCount);
  for (int round = 0; round < 5; ++round) {
    std::fill(elements.begin(), elements.end(), static_cast<float>(round));
    server_.set_script(Refuse(server_.num_calls() + 2, grpc::StatusCode::UNAVAILABLE));

    const auto response = Execute(*client, RequestOf(Tensor::Of<float>({kCount}, elements)));

    std::fill(elements.begin(), elements.end(), -1.0f);
    ASSERT_TRUE(response.ok()) << response.status();
    const auto echoed = *response->results[0].values<float>();
    EXPECT_EQ(std::count(echoed.begin(), echoed.end(), static_cast<float>(round)), kCount);
  }
}

// Breaks the first connection in the middle of a call, then serves at the same place.
class BreakingServer {
 public:
  BreakingServer() : listener_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    thread_ = std::thread([this] {
      const int connection = accept(listener_, nullptr, nullptr);
      char byte = 0;
      EXPECT_EQ(read(connection, &byte, 1), 1);
      close(listener_);
      unlink(path_.c_str());
      server_.emplace(target());
      close(connection);
    });
  }
  ~BreakingServer() { thread_.join(); }

  std::string target() const { return "unix:" + path_; }
  ScriptedServer& server() { return *server_; }  // after the first call

 private:
  TemporaryDirectory directory_;
  const std::string path_ = directory_.File("socket");
  const int listener_;
  std::optional<ScriptedServer> server_;
  std::thread thread_;
};

TEST_P(RetryTest, ABrokenConnectionIsNotSeen) {
  BreakingServer breaking;
  // gRPC connects anew after 100 ms; random waits may make five attempts in less.
  const auto client =
      *Client::Connect(breaking.target(), {.retry = {.max_attempts = 20, .budget = 20}});

  const auto response = Execute(*client, SmallRequest());

  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(breaking.server().num_calls(), 1);
}

TEST(RetriedCallsTest, CallsWithoutTensorsAreRepeatedToo) {
  ScriptedServer server;
  server.set_script(Refuse(3, grpc::StatusCode::UNAVAILABLE));
  const auto client = *Client::Connect(server.target());

  EXPECT_TRUE(client->GetServerStatus().ok());
  EXPECT_EQ(server.num_calls(), 4);
}

TEST(RetriedCallsTest, ACallThatWaitsCanBeCancelled) {
  ScriptedServer server;
  server.set_script(Refuse(kAlways, grpc::StatusCode::UNAVAILABLE, "3600000"));
  Request request = SmallRequest();
  request.timeout = absl::InfiniteDuration();
  const auto is_over = [](const absl::Status& status) {
    // The refusal, if the call was cancelled before it began to wait.
    return absl::IsCancelled(status) || absl::IsUnavailable(status);
  };

  auto client = *Client::Connect(server.target());
  std::promise<absl::Status> cancelled;
  const CallHandle handle = client->ExecuteAsync(
      request, [&](absl::StatusOr<Response> response) { cancelled.set_value(response.status()); });
  EXPECT_TRUE(Await([&] { return server.num_calls() == 1; }));
  handle.Cancel();
  EXPECT_TRUE(is_over(cancelled.get_future().get()));

  auto destroyed = client->ExecuteAsync(request);
  EXPECT_TRUE(Await([&] { return server.num_calls() == 2; }));
  client = nullptr;
  EXPECT_TRUE(is_over(destroyed.get().status()));
  EXPECT_EQ(server.num_calls(), 2);
}

TEST(RetriedCallsTest, ManyCallsWaitBesideEachOther) {
  ScriptedServer server;
  server.set_script(Refuse(100, grpc::StatusCode::RESOURCE_EXHAUSTED, "20"));
  const auto client =
      *Client::Connect(server.target(), {.retry = {.max_attempts = 101, .budget = 1000}});
  std::vector<std::future<absl::StatusOr<Response>>> pending;
  for (int i = 0; i < 50; ++i) pending.push_back(client->ExecuteAsync(SmallRequest()));
  for (auto& response : pending) EXPECT_TRUE(response.get().ok());
  EXPECT_EQ(server.num_calls(), 150);
}

// Refuses every call and remembers whose it was.
class RecordingServer final : public grpc::CallbackGenericService {
 public:
  RecordingServer() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
    target_ = absl::StrCat("127.0.0.1:", port);
  }

  const std::string& target() const { return target_; }

  // By method.
  std::map<std::string, std::string> authorizations() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return authorizations_;
  }

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    class Refusal final : public grpc::ServerGenericBidiReactor {
     public:
      Refusal() { Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "")); }
      void OnDone() override { delete this; }
    };
    const auto& metadata = context->client_metadata();
    const auto found = metadata.find("authorization");
    absl::MutexLock lock(&mutex_);
    authorizations_[context->method()] =
        found == metadata.end() ? "" : std::string(found->second.data(), found->second.size());
    return new Refusal;
  }

  std::string target_;
  absl::Mutex mutex_;
  std::map<std::string, std::string> authorizations_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

TEST(TokenTest, GoesWithEveryCall) {
  RecordingServer server;
  const ConnectOptions options = {.token = "s3cret"};
  const auto client = *Client::Connect(server.target(), options);
  const auto admin = *AdminClient::Connect(server.target(), options);
  const Tensor tensor = Tensor::Owning<float>({1}, {1});

  EXPECT_FALSE(client->Execute(RequestOf(tensor)).ok());
  EXPECT_FALSE(client->Upload(tensor).ok());
  EXPECT_FALSE(client->Download("handle").ok());
  EXPECT_FALSE(client->Renew({"handle"}, absl::Minutes(1)).ok());
  EXPECT_FALSE(client->Release({"handle"}).ok());
  EXPECT_FALSE(client->ListOperators().ok());
  EXPECT_FALSE(client->GetServerStatus().ok());
  EXPECT_FALSE((*client->OpenStream())->Execute(RequestOf(tensor)).get().ok());
  EXPECT_FALSE(admin->TrimPool(0).ok());

  const auto authorizations = server.authorizations();
  EXPECT_EQ(authorizations.size(), 9u);
  EXPECT_THAT(authorizations, Each(testing::Pair(testing::_, "Bearer s3cret")));
  (void)(*Client::Connect(server.target()))->GetServerStatus();
  EXPECT_EQ(server.authorizations()["/opserve.v1.OperatorService/GetServerStatus"], "");
}

TEST(TokenTest, StaysOnThisMachineWithoutTls) {
  for (const char* target :
       {"npu.example:80", "10.0.0.1:80", "dns:///npu.example:80", "127.0.0.1:80,10.0.0.1:80"}) {
    const absl::Status status = Client::Connect(target, {.token = "s3cret"}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << target;
    EXPECT_THAT(std::string(status.message()), HasSubstr("without TLS, a token is sent to Unix"));
    EXPECT_THAT(std::string(status.message()), testing::Not(HasSubstr("s3cret")));
    EXPECT_EQ(AdminClient::Connect(target, {.token = "s3cret"}).status(), status);
    EXPECT_TRUE(Client::Connect(target).ok());
  }
  for (const char* target : {"unix:/a", "localhost:80", "[::1]:80", "unix:/a,unix:/b"}) {
    EXPECT_TRUE(Client::Connect(target, {.token = "s3cret"}).ok()) << target;
  }
}

TEST(TokenTest, IsPrintable) {
  for (const char* token : {"two words", "line\n", "\xc3\xa4"}) {
    EXPECT_THAT(std::string(Client::Connect("unix:/a", {.token = token}).status().message()),
                HasSubstr("the token has a byte that is not"));
  }
}

}  // namespace
}  // namespace opserve
