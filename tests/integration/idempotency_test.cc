// Idempotency keys as clients see them, through all doors and over streams.

#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/config/tenant_config.h"
#include "tests/await.h"
#include "tests/integration/door.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/execute_stream_calls.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"

namespace opserve::server {
namespace {

class IdempotencyTest : public ::testing::TestWithParam<Door> {
 protected:
  struct Outcome {
    grpc::Status status;
    v1::ExecuteResponse response;
  };

  void TearDown() override { ClearFaults(); }

  void StartDaemon(const Config& config = InProcessDaemon::DefaultConfig()) {
    daemon_.emplace(config);
    stub_ = NewStub(daemon_->target());
    launches_ = HostCount(OPSERVE_HOST_LAUNCHES);
  }

  // Kernels launched since the daemon's start.
  int64_t Launches() const { return HostCount(OPSERVE_HOST_LAUNCHES) - launches_; }
  void AwaitLaunches(int64_t launches) const {
    EXPECT_TRUE(Await([&] { return Launches() >= launches; }));
  }

  Outcome Execute(const v1::ExecuteRequest& request, const std::string& token = "") {
    Outcome outcome;
    DoorCaller caller(daemon_->target(), GetParam(), token);
    outcome.status = caller.Execute(request, &outcome.response);
    return outcome;
  }
  std::future<Outcome> ExecuteAsync(const v1::ExecuteRequest& request) {
    return std::async(std::launch::async, [this, request] { return Execute(request); });
  }

  // Of the metrics of the default tenant.
  double Value(const std::string& family) const {
    return MetricValue(daemon_->daemon(), family, {{"tenant", "default"}});
  }

  // Sends a request with `key` over the stream and returns when the daemon has it.
  static void SendAndAwaitArrival(TestStream& stream, uint64_t id, const std::string& key) {
    v1::ExecuteStreamRequest request = OnesStreamRequest(id);
    request.mutable_request()->set_idempotency_key(key);
    stream.Send(request);
    // Messages are handled in order, and this one is answered at once.
    v1::ExecuteStreamRequest empty;
    empty.set_id(id + 1);
    stream.Send(empty);
    EXPECT_EQ(stream.Receive().id(), id + 1);
  }

  std::optional<InProcessDaemon> daemon_;
  std::unique_ptr<v1::OperatorService::Stub> stub_;

 private:
  int64_t launches_ = 0;
};

// printf %s a | sha256sum, and so on
constexpr char kTwoTenants[] = R"(
  tenant { name: "greedy"
           token_sha256: "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" }
  tenant { name: "modest"
           token_sha256: "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d" })";

v1::ExecuteRequest WithReceipt(v1::ExecuteRequest request) {
  request.set_want_receipt(true);
  return request;
}

TEST_P(IdempotencyTest, ARepetitionGetsTheSameAnswerWithoutRunningAgain) {
  StartDaemon();
  const v1::ExecuteRequest request = WithReceipt(OnesRequest(1000, "key"));

  const Outcome first = Execute(request);
  const Outcome second = Execute(request);

  ASSERT_TRUE(first.status.ok()) << first.status.error_message();
  ASSERT_TRUE(second.status.ok()) << second.status.error_message();
  EXPECT_TRUE(IsAllOnes(first.response, 1000));
  EXPECT_EQ(first.response.SerializeAsString(), second.response.SerializeAsString());
  EXPECT_EQ(Launches(), 1);
  EXPECT_EQ(daemon_->HeldByRequests(), 0);
}

TEST_P(IdempotencyTest, WithoutKeyEveryRequestRuns) {
  StartDaemon();

  Execute(OnesRequest(10, ""));
  Execute(OnesRequest(10, ""));

  EXPECT_EQ(Launches(), 2);
}

TEST_P(IdempotencyTest, AnotherRequestWithTheKeyIsRefused) {
  StartDaemon();
  ASSERT_TRUE(Execute(OnesRequest(10, "key")).status.ok());
  v1::ExecuteRequest other_bytes = OnesRequest(10, "key");
  (*other_bytes.mutable_payloads(1))[0] ^= 1;

  for (const v1::ExecuteRequest& other :
       {other_bytes, OnesRequest(11, "key"), WithReceipt(OnesRequest(10, "key"))}) {
    const Outcome outcome = Execute(other);
    EXPECT_EQ(outcome.status.error_code(), grpc::INVALID_ARGUMENT);
    EXPECT_EQ(DetailOf(outcome.status).argument(), "idempotency_key");
  }
  EXPECT_EQ(Launches(), 1);
}

TEST_P(IdempotencyTest, ATooLongKeyIsRefused) {
  StartDaemon();

  EXPECT_TRUE(Execute(OnesRequest(10, std::string(64, 'k'))).status.ok());
  EXPECT_EQ(Execute(OnesRequest(10, std::string(65, 'k'))).status.error_code(),
            grpc::INVALID_ARGUMENT);
}

TEST_P(IdempotencyTest, OfConcurrentRepetitionsOneRuns) {
  StartDaemon();
  InjectFaults("kernel=*,slow=200000,count=all");
  std::vector<std::future<Outcome>> pending;

  for (int i = 0; i < 8; ++i) pending.push_back(ExecuteAsync(OnesRequest(100, "key")));

  for (std::future<Outcome>& outcome : pending) {
    EXPECT_TRUE(IsAllOnes(outcome.get().response, 100));
  }
  EXPECT_EQ(Launches(), 1);
}

TEST_P(IdempotencyTest, SingleCallsAndStreamsShareKeys) {
  StartDaemon();
  const Outcome first = Execute(OnesRequest(10, "key"));
  TestStream stream(*stub_);
  v1::ExecuteStreamRequest repetition = OnesStreamRequest(1);
  repetition.mutable_request()->set_idempotency_key("key");
  repetition.mutable_timeout()->set_seconds(10);

  stream.Send(repetition);
  const v1::ExecuteStreamResponse second = stream.Receive();

  EXPECT_TRUE(IsAllOnes(second));
  EXPECT_EQ(Launches(), 1);
}

TEST_P(IdempotencyTest, AFailureIsSharedButNotRemembered) {
  Config config = InProcessDaemon::DefaultConfig();
  config.execution_timeout = absl::Milliseconds(500);
  StartDaemon(config);
  InjectFaults("kernel=*,hang");
  auto first = ExecuteAsync(OnesRequest(10, "key"));
  AwaitLaunches(1);
  TestStream stream(*stub_);
  SendAndAwaitArrival(stream, 1, "key");

  EXPECT_EQ(first.get().status.error_code(), grpc::INTERNAL);
  EXPECT_EQ(stream.Receive().error().code(), grpc::INTERNAL);
  EXPECT_EQ(Launches(), 1);
  EXPECT_TRUE(IsAllOnes(Execute(OnesRequest(10, "key")).response, 10));
  EXPECT_EQ(Launches(), 2);
}

TEST_P(IdempotencyTest, WhenTheFirstCallerGoesAwayTheOthersGetTheAnswer) {
  StartDaemon();
  InjectFaults("kernel=*,slow=500000");
  DoorCaller caller(daemon_->target(), GetParam());
  std::thread first([&] {
    v1::ExecuteResponse response;
    EXPECT_EQ(caller.Execute(OnesRequest(10, "key"), &response).error_code(), grpc::CANCELLED);
  });
  AwaitLaunches(1);
  TestStream stream(*stub_);
  SendAndAwaitArrival(stream, 1, "key");

  caller.Cancel();
  first.join();

  EXPECT_TRUE(IsAllOnes(stream.Receive()));
  EXPECT_EQ(Launches(), 1);
}

TEST_P(IdempotencyTest, WhenAllCallersGoAwayTheRunIsCancelledAndTheNextBeginsAnew) {
  StartDaemon();
  InjectFaults("kernel=*,hang");
  TestStream first(*stub_);
  TestStream second(*stub_);
  SendAndAwaitArrival(first, 1, "key");
  SendAndAwaitArrival(second, 1, "key");
  AwaitLaunches(1);

  first.Cancel();
  second.Cancel();

  EXPECT_EQ(first.Finish().error_code(), grpc::CANCELLED);
  EXPECT_EQ(second.Finish().error_code(), grpc::CANCELLED);
  EXPECT_TRUE(Await([&] { return daemon_->HeldByRequests() == 0; }));
  EXPECT_TRUE(IsAllOnes(Execute(OnesRequest(10, "key")).response, 10));
  EXPECT_EQ(Launches(), 2);
}

TEST_P(IdempotencyTest, AnAnswerTooLargeToKeepIsGivenAndItsReceiptSaysSo) {
  Config config = InProcessDaemon::DefaultConfig();
  config.idempotency_cache_bytes = 1 << 20;
  StartDaemon(config);
  constexpr int64_t kLargest = (1 << 18) / 4;
  const auto run = [this](int64_t elements, const std::string& key) {
    return Execute(WithReceipt(OnesRequest(elements, key)));
  };

  const Outcome kept = run(kLargest, "a");
  const Outcome not_kept = run(kLargest + 1, "b");

  EXPECT_TRUE(IsAllOnes(kept.response, kLargest));
  EXPECT_FALSE(kept.response.receipt().not_remembered());
  EXPECT_TRUE(IsAllOnes(not_kept.response, kLargest + 1));
  EXPECT_TRUE(not_kept.response.receipt().not_remembered());
  EXPECT_EQ(Launches(), 2);
  EXPECT_EQ(run(kLargest, "a").response.SerializeAsString(), kept.response.SerializeAsString());
  EXPECT_TRUE(IsAllOnes(run(kLargest + 1, "b").response, kLargest + 1));
  EXPECT_EQ(Launches(), 3);
}

TEST_P(IdempotencyTest, AFullCacheForgetsTheOldestAnswersAndRefusesNobody) {
  Config config = InProcessDaemon::DefaultConfig();
  config.idempotency_cache_bytes = 1 << 20;
  StartDaemon(config);
  constexpr int64_t kElements = 60'000;  // 240 kB of results: four fit
  const auto run = [this](int key) {
    return IsAllOnes(Execute(OnesRequest(kElements, absl::StrCat(key))).response, kElements);
  };
  for (int key = 0; key < 6; ++key) EXPECT_TRUE(run(key));
  EXPECT_EQ(Launches(), 6);

  for (int key = 2; key < 6; ++key) EXPECT_TRUE(run(key));
  EXPECT_EQ(Launches(), 6);
  EXPECT_TRUE(run(0));
  EXPECT_EQ(Launches(), 7);
  EXPECT_EQ(Value("opserve_idempotency_entries"), 4);
  EXPECT_EQ(Value("opserve_idempotency_evictions_total"), 3);
  EXPECT_EQ(Value("opserve_idempotency_unremembered_total"), 0);
}

// The attack: one tenant filled the cache in a second, and another's calls were refused for ten
// minutes.
TEST_P(IdempotencyTest, ATenantThatFillsTheCacheTakesNoOthersShare) {
  Config config = InProcessDaemon::DefaultConfig();
  config.idempotency_cache_bytes = 1 << 20;
  config::ServerConfig values;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kTwoTenants, &values));
  config.tenants = *TenantsFrom(values);
  StartDaemon(config);
  const auto run = [this](const std::string& token, int key) {
    EXPECT_TRUE(Execute(OnesRequest(10'000, absl::StrCat(key)), token).status.ok()) << key;
  };
  for (int key = 0; key < 100; ++key) run("a", key);  // of 40 kB each

  for (int key = 0; key < 10; ++key) run("b", key);
  for (int key = 100; key < 200; ++key) run("a", key);

  EXPECT_EQ(Launches(), 210);
  for (int key = 0; key < 10; ++key) run("b", key);
  EXPECT_EQ(Launches(), 210);
}

TEST_P(IdempotencyTest, KeptAnswersTakeNoPageLockedMemory) {
  Config config = InProcessDaemon::DefaultConfig();
  config.pinned_pool_bytes = 1 << 20;
  StartDaemon(config);
  // 480 kB of results: two fit into the pool. The request is one frame of a session.
  constexpr int64_t kElements = 120'000;

  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(IsAllOnes(Execute(OnesRequest(kElements, absl::StrCat(i))).response, kElements));
  }
  EXPECT_TRUE(IsAllOnes(Execute(OnesRequest(kElements, "")).response, kElements));
}

// A request that keeps its result, of which the client says which of its requests it is.
v1::ExecuteRequest KeepingRequest(uint64_t number, uint64_t answered_below) {
  v1::ExecuteRequest request = OnesRequest(10, "");
  request.add_results()->mutable_keep();
  v1::RequestIdentity& identity = *request.mutable_identity();
  identity.set_client(std::string(16, 'c'));
  identity.set_number(number);
  identity.set_answered_below(answered_below);
  return request;
}

TEST_P(IdempotencyTest, ANumberedRequestKeepsItsResultOnce) {
  StartDaemon();

  const Outcome first = Execute(KeepingRequest(1, 1));
  v1::ExecuteRequest again = KeepingRequest(1, 1);
  (*again.mutable_payloads(1))[0] ^= 1;  // the contents are no part of the identity
  const Outcome second = Execute(again);

  ASSERT_TRUE(first.status.ok()) << first.status.error_message();
  EXPECT_EQ(second.response.SerializeAsString(), first.response.SerializeAsString());
  EXPECT_EQ(Launches(), 1);
  EXPECT_EQ(daemon_->client().GetServerStatus()->resident_tensors(), 1u);
  EXPECT_TRUE(Execute(KeepingRequest(2, 1)).status.ok());
  EXPECT_EQ(Launches(), 2);
}

TEST_P(IdempotencyTest, AnswersThatAClientHasTakeNoMemory) {
  Config config = InProcessDaemon::DefaultConfig();
  config.idempotency_cache_bytes = 8 << 10;
  StartDaemon(config);

  for (uint64_t number = 1; number <= 50; ++number) {
    v1::ExecuteRequest request = KeepingRequest(number, number);
    ASSERT_TRUE(Execute(request).status.ok()) << number;
  }
  EXPECT_EQ(Value("opserve_idempotency_entries"), 1);
  EXPECT_EQ(Execute(KeepingRequest(49, 0)).status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(Launches(), 50);
}

TEST_P(IdempotencyTest, ANumberedRequestWhoseAnswerIsTooLargeRunsOnceAllTheSame) {
  Config config = InProcessDaemon::DefaultConfig();
  config.idempotency_cache_bytes = 8 << 10;
  StartDaemon(config);
  v1::ExecuteRequest request = OnesRequest(1000, "");  // 4 kB of results
  *request.mutable_identity() = KeepingRequest(1, 1).identity();
  request.add_results();  // sent
  request.add_results()->mutable_keep();

  const Outcome first = Execute(request);
  const Outcome again = Execute(request);

  ASSERT_TRUE(first.status.ok()) << first.status.error_message();
  EXPECT_EQ(first.response.results_size(), 2);
  EXPECT_EQ(again.status.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_EQ(DetailOf(again.status).reason(), "tenant_memory");
  EXPECT_EQ(Launches(), 1);
}

TEST_P(IdempotencyTest, AnIdentityIsChecked) {
  StartDaemon();
  struct Case {
    const char* name;
    std::function<void(v1::ExecuteRequest*)> spoil;
    const char* problem;
  };
  const Case kCases[] = {
      {"short", [](auto* r) { r->mutable_identity()->set_client("c"); }, "1 bytes, 16 expected"},
      {"long", [](auto* r) { r->mutable_identity()->set_client(std::string(17, 'c')); },
       "17 bytes"},
      {"answered itself", [](auto* r) { r->mutable_identity()->set_answered_below(6); }, "is 6"},
      {"with a key", [](auto* r) { r->set_idempotency_key("key"); }, "not both"},
  };
  for (const Case& c : kCases) {
    v1::ExecuteRequest request = KeepingRequest(5, 5);
    c.spoil(&request);
    const Outcome outcome = Execute(request);
    EXPECT_EQ(outcome.status.error_code(), grpc::INVALID_ARGUMENT) << c.name;
    EXPECT_EQ(DetailOf(outcome.status).argument(), "identity") << c.name;
    EXPECT_NE(outcome.status.error_message().find(c.problem), std::string::npos)
        << outcome.status.error_message();
  }
  EXPECT_EQ(Launches(), 0);
}

INSTANTIATE_TEST_SUITE_P(Doors, IdempotencyTest, AllDoors(), DoorName);

}  // namespace
}  // namespace opserve::server
