// ExecuteStream as clients see it: what is answered when, what an error touches, and what holds a
// stream back.

#include <algorithm>
#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/execute_stream_calls.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/launch_counting_test.h"

namespace opserve::server {
namespace {

class ExecuteStreamTest : public LaunchCountingTest {};

TEST_F(ExecuteStreamTest, EveryRequestIsAnsweredAndThenTheStreamEnds) {
  InProcessDaemon daemon;
  const auto stub = NewStub(daemon.target());
  TestStream stream(*stub);
  constexpr uint64_t kRequests = 200;  // more than fit into the window

  std::thread sender([&] {
    for (uint64_t id = 1; id <= kRequests; ++id) {
      stream.Send(OnesStreamRequest(id, static_cast<int64_t>(id)));
    }
    stream.SendNoMore();
  });
  std::set<uint64_t> answered;
  for (uint64_t i = 0; i < kRequests; ++i) {
    const v1::ExecuteStreamResponse response = stream.Receive();
    EXPECT_TRUE(IsAllOnes(response, static_cast<int64_t>(response.id()))) << response.id();
    answered.insert(response.id());
  }
  sender.join();

  EXPECT_EQ(answered.size(), kRequests);
  EXPECT_EQ(stream.Receive().outcome_case(), v1::ExecuteStreamResponse::OUTCOME_NOT_SET);
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(daemon.HeldByRequests(), 0);
}

TEST_F(ExecuteStreamTest, AStreamWithoutRequestsEndsWell) {
  InProcessDaemon daemon;
  const auto stub = NewStub(daemon.target());
  TestStream stream(*stub);

  stream.SendNoMore();

  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(ExecuteStreamTest, AnswersComeInTheOrderInWhichTheyEnd) {
  InProcessDaemon daemon;
  const auto stub = NewStub(daemon.target());
  TestStream stream(*stub);
  CountLaunches();
  InjectFaults("kernel=*,slow=1000000");

  stream.Send(OnesStreamRequest(1));
  AwaitLaunches(1);
  for (uint64_t id : {2, 3, 4}) stream.Send(OnesStreamRequest(id));
  stream.SendNoMore();

  std::set<uint64_t> first_three;
  for (int i = 0; i < 3; ++i) first_three.insert(stream.Receive().id());
  EXPECT_EQ(first_three, (std::set<uint64_t>{2, 3, 4}));
  const v1::ExecuteStreamResponse slow = stream.Receive();
  EXPECT_EQ(slow.id(), 1u);
  EXPECT_TRUE(IsAllOnes(slow));
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(ExecuteStreamTest, TheReceiptIsThatOfASingleCall) {
  InProcessDaemon daemon;
  const auto stub = NewStub(daemon.target());
  TestStream stream(*stub);
  v1::ExecuteStreamRequest request = OnesStreamRequest(1, 1000);
  request.mutable_request()->set_want_receipt(true);

  stream.Send(request);
  const v1::Receipt receipt = stream.Receive().response().receipt();

  EXPECT_EQ(receipt.copied_to_device_bytes(), 8004u);
  EXPECT_EQ(receipt.copied_from_device_bytes(), 4000u);
  EXPECT_EQ(receipt.plan_hits() + receipt.plan_misses(), 1u);
  EXPECT_GE(receipt.device_memory_bytes(), 12004u);
  EXPECT_NE(receipt.pool_outcome(), v1::Receipt::POOL_OUTCOME_UNSPECIFIED);
  EXPECT_EQ(receipt.read_ns() + receipt.validate_ns() + receipt.queue_ns() + receipt.h2d_ns() +
                receipt.prepare_ns() + receipt.execute_ns() + receipt.d2h_ns() + receipt.write_ns(),
            receipt.total_ns());
}

struct BadRequest {
  const char* name;
  std::function<void(v1::ExecuteStreamRequest*)> spoil;
  grpc::StatusCode code;
  const char* argument;
};

TEST_F(ExecuteStreamTest, AnErrorConcernsItsRequestAlone) {
  const std::vector<BadRequest> cases = {
      {"no request", [](auto* r) { r->clear_request(); }, grpc::INVALID_ARGUMENT, "request"},
      {"payloads inside", [](auto* r) { r->mutable_request()->add_payloads("x"); },
       grpc::INVALID_ARGUMENT, "request"},
      {"negative timeout", [](auto* r) { r->mutable_timeout()->set_seconds(-1); },
       grpc::INVALID_ARGUMENT, "timeout"},
      {"negative nanoseconds", [](auto* r) { r->mutable_timeout()->set_nanos(-1); },
       grpc::INVALID_ARGUMENT, "timeout"},
      {"a second of nanoseconds", [](auto* r) { r->mutable_timeout()->set_nanos(1'000'000'000); },
       grpc::INVALID_ARGUMENT, "timeout"},
      {"timeout without end", [](auto* r) { r->mutable_timeout()->set_seconds(INT64_MAX); },
       grpc::INVALID_ARGUMENT, "timeout"},
      {"unknown operator",
       [](auto* r) { r->mutable_request()->mutable_invocations(0)->set_operator_("Nonsense"); },
       grpc::INVALID_ARGUMENT, ""},
      {"wrong shape",
       [](auto* r) {
         r->mutable_request()
             ->mutable_invocations(0)
             ->mutable_inputs(1)
             ->mutable_tensor()
             ->set_shape(0, 9);
       },
       grpc::INVALID_ARGUMENT, "self"},
      {"no time at all", [](auto* r) { r->mutable_timeout()->set_nanos(1); },
       grpc::DEADLINE_EXCEEDED, ""},
  };
  InProcessDaemon daemon;
  const auto stub = NewStub(daemon.target());
  TestStream stream(*stub);
  for (const BadRequest& c : cases) {
    v1::ExecuteStreamRequest bad = OnesStreamRequest(7);
    c.spoil(&bad);
    stream.Send(bad);

    const v1::ExecuteStreamResponse response = stream.Receive();

    EXPECT_EQ(response.id(), 7u) << c.name;
    EXPECT_EQ(response.error().code(), c.code) << c.name << ": " << response.error().message();
    EXPECT_EQ(DetailOf(response.error()).argument(), c.argument) << c.name;
    EXPECT_FALSE(response.error().message().empty()) << c.name;
    EXPECT_NE(DetailOf(response.error()).reason(), "") << c.name;
    stream.Send(OnesStreamRequest(7));
    EXPECT_TRUE(IsAllOnes(stream.Receive())) << c.name;
  }
  stream.SendNoMore();

  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(daemon.HeldByRequests(), 0);
}

TEST_F(ExecuteStreamTest, AFailedKernelIsAnsweredInBand) {
  InProcessDaemon daemon;
  const auto stub = NewStub(daemon.target());
  TestStream stream(*stub);
  InjectFaults("kernel=*,code=507035");

  stream.Send(OnesStreamRequest(1));
  const v1::ExecuteStreamResponse failed = stream.Receive();
  stream.Send(OnesStreamRequest(2));

  EXPECT_EQ(failed.error().code(), grpc::INTERNAL);
  EXPECT_EQ(DetailOf(failed.error()).acl_error(), 507035);
  EXPECT_TRUE(IsAllOnes(stream.Receive()));
}

TEST_F(ExecuteStreamTest, AnIdInProgressIsRefusedAndFreeAfterwards) {
  InProcessDaemon daemon;
  const auto stub = NewStub(daemon.target());
  TestStream stream(*stub);
  CountLaunches();
  InjectFaults("kernel=*,slow=500000");
  stream.Send(OnesStreamRequest(5));
  AwaitLaunches(1);

  stream.Send(OnesStreamRequest(5));
  const v1::ExecuteStreamResponse refused = stream.Receive();
  const v1::ExecuteStreamResponse first = stream.Receive();
  stream.Send(OnesStreamRequest(5));

  EXPECT_EQ(refused.id(), 5u);
  EXPECT_EQ(refused.error().code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(DetailOf(refused.error()).argument(), "id");
  EXPECT_TRUE(IsAllOnes(first));
  EXPECT_TRUE(IsAllOnes(stream.Receive()));
}

TEST_F(ExecuteStreamTest, ARequestThatWaitsPastItsTimeoutIsNotLaunched) {
  InProcessDaemon daemon(InProcessDaemon::OneLane());
  const auto stub = NewStub(daemon.target());
  TestStream stream(*stub);
  CountLaunches();
  InjectFaults("kernel=*,slow=200000");
  stream.Send(OnesStreamRequest(1));
  AwaitLaunches(1);
  v1::ExecuteStreamRequest late = OnesStreamRequest(2);
  late.mutable_timeout()->set_nanos(1'000'000);

  stream.Send(late);
  std::vector<v1::ExecuteStreamResponse> answers = {stream.Receive(), stream.Receive()};
  std::sort(answers.begin(), answers.end(),
            [](const auto& a, const auto& b) { return a.id() < b.id(); });

  EXPECT_TRUE(IsAllOnes(answers[0]));
  EXPECT_EQ(answers[1].error().code(), grpc::DEADLINE_EXCEEDED);
  EXPECT_EQ(DetailOf(answers[1].error()).reason(), "deadline_expired");
  EXPECT_EQ(Launches(), 1);
}

TEST_F(ExecuteStreamTest, NoMoreThanTheWindowIsReadAhead) {
  Config config = InProcessDaemon::OneLane();
  config.stream_window = 4;
  InProcessDaemon daemon(config);
  const auto stub = NewStub(daemon.target());
  TestStream stream(*stub);
  constexpr uint64_t kRequests = 24;
  InjectFaults("kernel=*,slow=10000,count=all");

  std::atomic<bool> is_over = false;
  std::thread client([&] {
    for (uint64_t id = 1; id <= kRequests; ++id) stream.Send(OnesStreamRequest(id));
    stream.SendNoMore();
    for (uint64_t i = 0; i < kRequests; ++i) EXPECT_TRUE(IsAllOnes(stream.Receive()));
    is_over = true;
  });
  uint32_t most = 0;
  while (!is_over) most = std::max(most, CountRequests(*stub));
  client.join();

  EXPECT_LE(most, config.stream_window);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(ExecuteStreamTest, AnswersNobodyReadsCountForTheWindow) {
  Config config = InProcessDaemon::OneLane();
  config.stream_window = 4;
  InProcessDaemon daemon(config);
  const auto stub = NewStub(daemon.target());
  TestStream stream(*stub);
  CountLaunches();
  constexpr int64_t kElements = 1 << 20;
  constexpr uint64_t kRequests = 32;

  std::thread sender([&] {
    for (uint64_t id = 1; id <= kRequests; ++id) stream.Send(OnesStreamRequest(id, kElements));
    stream.SendNoMore();
  });
  AwaitLaunches(config.stream_window);
  // Others come through meanwhile, over the same thread and lane. They have a connection of their
  // own, because results that are not read are bounded for each connection.
  const auto others = NewStub(daemon.target());
  constexpr int kOthers = 20;
  for (int i = 0; i < kOthers; ++i) {
    grpc::ClientContext context;
    v1::ExecuteResponse response;
    EXPECT_TRUE(others->Execute(&context, OnesRequest(kElements, ""), &response).ok());
  }
  const int64_t launches = Launches() - kOthers;
  for (uint64_t i = 0; i < kRequests; ++i) EXPECT_TRUE(IsAllOnes(stream.Receive(), kElements));
  sender.join();

  // Beside the window only what buffers on the way take is run, which is some answers, not all.
  EXPECT_LT(launches, kRequests / 2);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(ExecuteStreamTest, CancellingInTheMiddleLeavesNothingHeld) {
  InProcessDaemon daemon(InProcessDaemon::OneLane());
  const auto stub = NewStub(daemon.target());
  TestStream stream(*stub);
  CountLaunches();
  InjectFaults("kernel=*,hang");
  for (uint64_t id = 1; id <= 5; ++id) stream.Send(OnesStreamRequest(id));
  AwaitLaunches(1);
  EXPECT_TRUE(Await([&] { return CountRequests(*stub) == 5; }));

  stream.Cancel();

  EXPECT_EQ(stream.Finish().error_code(), grpc::CANCELLED);
  EXPECT_TRUE(Await([&] { return daemon.HeldByRequests() == 0; }));
  EXPECT_EQ(Launches(), 1);
  TestStream next(*stub);
  next.Send(OnesStreamRequest(1));
  EXPECT_TRUE(IsAllOnes(next.Receive()));
}

TEST_F(ExecuteStreamTest, TheStreamsDeadlineEndsWhatIsInProgress) {
  InProcessDaemon daemon(InProcessDaemon::OneLane());
  const auto stub = NewStub(daemon.target());
  CountLaunches();
  InjectFaults("kernel=*,hang");
  TestStream stream(*stub, absl::Milliseconds(300));

  for (uint64_t id = 1; id <= 3; ++id) stream.Send(OnesStreamRequest(id));

  while (stream.Receive().id() != 0) {
  }
  EXPECT_EQ(stream.Finish().error_code(), grpc::DEADLINE_EXCEEDED);
  EXPECT_TRUE(Await([&] { return daemon.HeldByRequests() == 0; }));
  EXPECT_LE(Launches(), 1);
}

// A stream of raw messages.
class RawStream {
 public:
  explicit RawStream(const std::string& target)
      : stub_(grpc::CreateChannel(target, grpc::InsecureChannelCredentials())),
        call_(stub_.PrepareCall(&context_, "/opserve.v1.OperatorService/ExecuteStream", &queue_)) {
    call_->StartCall(nullptr);
    Wait();
  }

  bool Send(const std::string& bytes) {
    const grpc::Slice slice(bytes);
    call_->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    return Wait();
  }
  bool Receive(v1::ExecuteStreamResponse* response) {
    grpc::ByteBuffer buffer;
    call_->Read(&buffer, nullptr);
    return Wait() &&
           grpc::SerializationTraits<v1::ExecuteStreamResponse>::Deserialize(&buffer, response)
               .ok();
  }
  grpc::Status Finish() {
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Wait();
    return status;
  }

 private:
  bool Wait() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

TEST_F(ExecuteStreamTest, AMalformedMessageEndsTheStreamAfterWhatIsInProgress) {
  InProcessDaemon daemon;
  for (const char* bytes : {"\x0a", "\x7a\x7f", "no message", "\x1a\x01\xff"}) {
    CountLaunches();
    InjectFaults("kernel=*,slow=100000");
    RawStream stream(daemon.target());
    ASSERT_TRUE(stream.Send(OnesStreamRequest(1).SerializeAsString()));
    AwaitLaunches(1);

    ASSERT_TRUE(stream.Send(bytes));

    v1::ExecuteStreamResponse response;
    ASSERT_TRUE(stream.Receive(&response));
    EXPECT_TRUE(IsAllOnes(response));
    EXPECT_FALSE(stream.Receive(&response));
    const grpc::Status status = stream.Finish();
    EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT) << status.error_message();
    EXPECT_EQ(DetailOf(status).reason(), "invalid");
  }
  EXPECT_EQ(daemon.HeldByRequests(), 0);
}

TEST_F(ExecuteStreamTest, ADrainRefusesNewRequestsInBandAndDoesNotWaitForIdleStreams) {
  auto daemon = std::make_unique<InProcessDaemon>(InProcessDaemon::OneLane());
  const auto stub = NewStub(daemon->target());
  TestStream stream(*stub);
  TestStream idle(*stub);
  idle.Send(OnesStreamRequest(1));
  ASSERT_TRUE(IsAllOnes(idle.Receive()));
  CountLaunches();
  InjectFaults("kernel=*,slow=1000000");
  stream.Send(OnesStreamRequest(1));
  AwaitLaunches(1);
  int64_t cut_off = -1;
  std::thread drain([&] { cut_off = daemon->daemon().Drain(); });

  // Until the drain has begun, requests are taken, and answered after the slow one.
  v1::ExecuteStreamResponse response;
  uint64_t id = 2;
  do {
    stream.Send(OnesStreamRequest(id++));
    response = stream.Receive();
  } while (response.has_response());
  stream.SendNoMore();
  while (stream.Receive().id() != 0) {
  }
  drain.join();

  EXPECT_EQ(response.error().code(), grpc::UNAVAILABLE);
  EXPECT_EQ(DetailOf(response.error()).reason(), "draining");
  EXPECT_GT(DetailOf(response.error()).retry_pushback_ms(), 0);
  EXPECT_EQ(cut_off, 0);
  EXPECT_TRUE(stream.Finish().ok());
  daemon.reset();
  EXPECT_FALSE(idle.Finish().ok());
}

}  // namespace
}  // namespace opserve::server
