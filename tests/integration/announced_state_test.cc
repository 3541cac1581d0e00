// Announced requests that use resident tensors, or that their clients repeat: whose turn it is
// while their payloads arrive, and what the end of an upload means for others.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/run/resident_tensors.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/await.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/execute_stream_calls.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/launch_counting_test.h"
#include "tests/integration/session_calls.h"
#include "tests/integration/tensor_calls.h"

namespace opserve::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Adds its payload, which is not a part of it, to a tensor, and returns the sum.
v1::ExecuteRequest Adding(const std::string& tensor, uint64_t number) {
  v1::ExecuteRequest request;
  v1::Invocation* add = request.add_invocations();
  add->set_operator_("Add");
  v1::NamedTensor* self = add->add_inputs();
  self->set_name("self");
  self->mutable_tensor()->set_resident_tensor(tensor);
  v1::NamedTensor* other = add->add_inputs();
  other->set_name("other");
  other->mutable_tensor()->set_dtype(v1::DATA_TYPE_FLOAT);
  other->mutable_tensor()->add_shape(2);
  other->mutable_tensor()->set_payload(0);
  request.add_results()->mutable_replace()->set_handle(tensor);
  request.add_results();
  request.mutable_identity()->set_client("its one training");  // 16 bytes
  request.mutable_identity()->set_number(number);
  return request;
}

v1::ExecuteRequest WithPayload(v1::ExecuteRequest request, const std::string& payload) {
  request.add_payloads(payload);
  return request;
}

std::vector<float> SumOf(const TestFrame& frame) {
  v1::ExecuteResponse response;
  EXPECT_EQ(frame.kind, kAnswerFrame) << ErrorOf(frame).message();
  EXPECT_TRUE(response.ParseFromString(frame.body));
  return response.payloads_size() == 1 ? Floats(response.payloads(0)) : std::vector<float>();
}

class AnnouncedStateTest : public LaunchCountingTest {
 protected:
  ~AnnouncedStateTest() override {
    ClearFaults();
    daemon_.EndLeases();
    EXPECT_TRUE(Await([this] { return daemon_.HeldByRequests() == 0; }))
        << daemon_.HeldByRequests() << " held";
    EXPECT_EQ(daemon_.daemon().residents().claims().waiting(), 0u);
  }

  std::string Upload(std::vector<float> values, std::optional<uint32_t> device = std::nullopt) {
    const auto uploaded = calls_.Upload({.bytes = Bytes(values), .device = device});
    EXPECT_TRUE(uploaded.status.ok()) << ToStatus(uploaded.status);
    return uploaded.response.handle();
  }
  static std::string Announce(uint64_t number, const v1::ExecuteRequest& request,
                              absl::Duration timeout = absl::ZeroDuration()) {
    return AnnouncementFrame(number, request, {8}, timeout);
  }
  // The next two, by request: the second's turn comes before the first's answer is written.
  static std::map<uint64_t, TestFrame> ReceiveTwo(TestSession& session) {
    std::map<uint64_t, TestFrame> frames;
    for (int i = 0; i < 2; ++i) {
      TestFrame frame = session.Receive();
      frames[frame.number] = std::move(frame);
    }
    return frames;
  }
  // Returns when a slow run has the tensor: that of the session's request 1, with identity 1.
  void HoldFor1500Ms(TestSession& session, const std::string& tensor) {
    InjectFaults("kernel=aclnnAdd,slow=1500000");
    CountLaunches();
    session.Send(RequestFrame(1, WithPayload(Adding(tensor, 1), Bytes({100, 100}))));
    AwaitLaunches(1);
  }
  // Until the daemon has handled all that was sent before.
  static void AwaitPong(TestSession& session, uint64_t ping) {
    session.Send(FrameBytes(kPingFrame, ping));
    const TestFrame frame = session.Receive();
    EXPECT_EQ(frame.kind, kPongFrame) << ErrorOf(frame).message();
    EXPECT_EQ(frame.number, ping);
  }

  InProcessDaemon daemon_;
  TensorCalls calls_{daemon_.target()};
  std::unique_ptr<v1::OperatorService::Stub> stub_ = NewStub(daemon_.target());
};

TEST_F(AnnouncedStateTest, LaterRequestsWaitForItsPayloads) {
  const std::string tensor = Upload({1, 2});
  TestSession session(*stub_);
  session.Send(Announce(1, Adding(tensor, 1)));
  EXPECT_EQ(CreditOf(session.Receive()), 8u);
  session.Send(RequestFrame(2, WithPayload(Adding(tensor, 2), Bytes({100, 100}))));
  AwaitPong(session, 7);
  EXPECT_TRUE(Await([this] { return daemon_.daemon().residents().claims().waiting() == 1; }));

  session.Send(FrameBytes(kChunkFrame, 1, Bytes({10, 10})));

  std::map<uint64_t, TestFrame> answers = ReceiveTwo(session);
  EXPECT_THAT(SumOf(answers[1]), ElementsAre(11, 12));
  EXPECT_THAT(SumOf(answers[2]), ElementsAre(111, 112));
  EXPECT_THAT(Floats(calls_.Download(tensor).bytes), ElementsAre(111, 112));
}

TEST_F(AnnouncedStateTest, AnEndBeforeItsPayloadsIsTheTurnOfOthers) {
  struct Case {
    const char* name;
    absl::Duration timeout;
    std::string frames;
    grpc::StatusCode code;
  };
  uint64_t number = 0;  // of the last identity
  for (const Case& c : std::vector<Case>{
           {"cancel", absl::ZeroDuration(), FrameBytes(kCancelFrame, 1), grpc::CANCELLED},
           {"deadline", absl::Milliseconds(500), "", grpc::DEADLINE_EXCEEDED}}) {
    SCOPED_TRACE(c.name);
    const std::string tensor = Upload({1, 2});
    TestSession session(*stub_);
    const uint64_t failing = ++number;
    session.Send(Announce(1, Adding(tensor, failing), c.timeout));
    EXPECT_EQ(CreditOf(session.Receive()), 8u);
    session.Send(RequestFrame(2, WithPayload(Adding(tensor, ++number), Bytes({100, 100}))));

    session.Send(c.frames);

    std::map<uint64_t, TestFrame> answers = ReceiveTwo(session);
    EXPECT_EQ(ErrorOf(answers[1]).code(), c.code);
    EXPECT_THAT(SumOf(answers[2]), ElementsAre(101, 102));
    // A failure is not remembered: the request may be sent again.
    session.Send(FrameBytes(kCancelFrame, 1) + Announce(3, Adding(tensor, failing)));
    EXPECT_EQ(CreditOf(session.Receive()), 8u);
    session.Send(FrameBytes(kChunkFrame, 3, Bytes({10, 10})));
    EXPECT_THAT(SumOf(session.Receive()), ElementsAre(111, 112));
    session.Send(RequestFrame(4, WithPayload(Adding(tensor, ++number), Bytes({0, 0}))));
    EXPECT_THAT(SumOf(session.Receive()), ElementsAre(111, 112));
  }
}

TEST_F(AnnouncedStateTest, ARunThatIsKnownNeedsNoPayloads) {
  const std::string tensor = Upload({1, 2});
  CountLaunches();
  TestSession session(*stub_);
  session.Send(RequestFrame(1, WithPayload(Adding(tensor, 1), Bytes({10, 10}))));
  const TestFrame first = session.Receive();

  session.Send(Announce(2, Adding(tensor, 1)));

  const TestFrame again = session.Receive();
  EXPECT_EQ(again.kind, kAnswerFrame);
  EXPECT_EQ(again.body, first.body);
  session.Send(FrameBytes(kCancelFrame, 2));
  AwaitPong(session, 7);
  EXPECT_EQ(Launches(), 1);
}

TEST_F(AnnouncedStateTest, ARepetitionIsToldThatTheFirstClientHasLeft) {
  const std::string tensor = Upload({1, 2});
  TestSession first(*stub_);
  first.Send(Announce(1, Adding(tensor, 1)));
  EXPECT_EQ(CreditOf(first.Receive()), 8u);
  TestSession second(*stub_);
  second.Send(Announce(1, Adding(tensor, 1)));
  AwaitPong(second, 7);  // and no credit

  first.Cancel();

  const v1::StatusDetails error = ErrorOf(second.Receive());
  EXPECT_EQ(error.code(), grpc::UNAVAILABLE);
  EXPECT_THAT(error.message(), HasSubstr("has left before they were complete; send it again"));
  second.Send(FrameBytes(kCancelFrame, 1) + Announce(2, Adding(tensor, 1)));
  EXPECT_EQ(CreditOf(second.Receive()), 8u);
  second.Send(FrameBytes(kChunkFrame, 2, Bytes({10, 10})));
  EXPECT_THAT(SumOf(second.Receive()), ElementsAre(11, 12));
  EXPECT_EQ(first.Finish().error_code(), grpc::CANCELLED);
}

TEST_F(AnnouncedStateTest, ARepetitionSharesTheRunThatTheFirstClientCompletes) {
  const std::string tensor = Upload({1, 2});
  CountLaunches();
  TestSession first(*stub_);
  first.Send(Announce(1, Adding(tensor, 1)));
  EXPECT_EQ(CreditOf(first.Receive()), 8u);
  TestSession second(*stub_);
  second.Send(Announce(1, Adding(tensor, 1)));
  AwaitPong(second, 7);

  first.Send(FrameBytes(kChunkFrame, 1, Bytes({10, 10})));

  EXPECT_THAT(SumOf(first.Receive()), ElementsAre(11, 12));
  EXPECT_THAT(SumOf(second.Receive()), ElementsAre(11, 12));
  EXPECT_EQ(Launches(), 1);
}

TEST_F(AnnouncedStateTest, PayloadsThatWaitedForAMovedTensorAreSentAgain) {
  const std::string tensor = Upload({1, 2}, 0);
  TestSession holder(*stub_);
  HoldFor1500Ms(holder, tensor);
  TestSession session(*stub_);
  session.Send(Announce(1, Adding(tensor, 2)));
  EXPECT_EQ(CreditOf(session.Receive()), 8u);
  session.Send(FrameBytes(kChunkFrame, 1, Bytes({10, 10})));
  DeviceService& device = *daemon_.daemon().scheduler().Find(0);

  ASSERT_TRUE(device.BeginDrain().ok());

  const TestFrame frame = session.Receive();
  EXPECT_EQ(ErrorOf(frame).code(), grpc::UNAVAILABLE);
  EXPECT_THAT(ErrorOf(frame).message(), HasSubstr("the payloads came to device 0"));
  EXPECT_THAT(SumOf(holder.Receive()), ElementsAre(101, 102));
  session.Send(Announce(2, Adding(tensor, 2)));
  EXPECT_EQ(CreditOf(session.Receive()), 8u);
  session.Send(FrameBytes(kChunkFrame, 2, Bytes({10, 10})));
  EXPECT_THAT(SumOf(session.Receive()), ElementsAre(111, 112));
  EXPECT_TRUE(device.Resume(absl::Now() + absl::Seconds(60)).ok());
}

TEST_F(AnnouncedStateTest, ADeadlineEndsOneThatWaitsForItsTurn) {
  const std::string tensor = Upload({1, 2});
  TestSession holder(*stub_);
  HoldFor1500Ms(holder, tensor);
  TestSession session(*stub_);
  session.Send(Announce(1, Adding(tensor, 2), absl::Milliseconds(300)));
  EXPECT_EQ(CreditOf(session.Receive()), 8u);

  session.Send(FrameBytes(kChunkFrame, 1, Bytes({10, 10})));

  EXPECT_EQ(ErrorOf(session.Receive()).code(), grpc::DEADLINE_EXCEEDED);
  EXPECT_THAT(SumOf(holder.Receive()), ElementsAre(101, 102));
  EXPECT_EQ(Launches(), 1);
}

}  // namespace
}  // namespace opserve::server
