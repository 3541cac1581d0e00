// Sessions of clients that mean ill: others are served meanwhile, and nothing grows.

#include <cstdlib>
#include <memory>
#include <set>
#include <string>

#include "absl/strings/numbers.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/bytes.h"
#include "tests/integration/execute_stream_calls.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/session_calls.h"
#include "tests/process_memory.h"

namespace opserve::server {
namespace {

constexpr int kMaxFrames = 4096;  // of a message

// 10^6 in the long run.
uint64_t ManyRequests() {
  const char* wanted = std::getenv("OPSERVE_SESSION_REQUESTS");
  uint64_t count = 20'000;
  if (wanted != nullptr) {
    EXPECT_TRUE(absl::SimpleAtoi(wanted, &count)) << wanted;
  }
  return count;
}

class SessionPeersTest : public ::testing::Test {
 protected:
  void TearDown() override {
    ClearFaults();
    ExpectOthersServed();
    EXPECT_TRUE(Await([&] { return daemon_.HeldByRequests() == 0; }));
  }

  void ExpectOthersServed() {
    other_.Send(OnesRequestFrame(++others_request_));
    EXPECT_TRUE(IsAllOnes(other_.Receive()));
  }

  // After all that the session has sent.
  static void ExpectPong(TestSession& session) {
    session.Send(FrameBytes(kPingFrame, 1234));
    const TestFrame frame = session.Receive();
    EXPECT_EQ(frame.kind, kPongFrame);
    EXPECT_EQ(frame.number, 1234u);
  }

  InProcessDaemon daemon_{InProcessDaemon::OneLane()};
  const std::unique_ptr<v1::OperatorService::Stub> stub_ = NewStub(daemon_.target());

 private:
  const std::unique_ptr<v1::OperatorService::Stub> others_stub_ = NewStub(daemon_.target());
  TestSession other_{*others_stub_};
  uint64_t others_request_ = 0;
};

TEST_F(SessionPeersTest, FramesThatAreCutAnywhereEndTheirSession) {
  const std::string frames = FrameBytes(kPingFrame, 1) + OnesRequestFrame(1, 1);
  for (size_t bytes = 0; bytes < frames.size(); ++bytes) {
    SCOPED_TRACE(bytes);
    TestSession session(*stub_);
    session.Send(frames.substr(0, bytes));
    session.SendNoMore();
    const bool has_ping = bytes >= 16;
    EXPECT_EQ(session.Receive().kind, has_ping ? kPongFrame : 0);
    if (has_ping) {
      EXPECT_EQ(session.Receive().kind, 0);
    }
    const grpc::Status status = session.Finish();
    // Behind the ping nothing is cut.
    EXPECT_EQ(status.error_code(),
              bytes == 0 || bytes == 16 ? grpc::StatusCode::OK : grpc::INVALID_ARGUMENT)
        << status.error_message();
  }
}

TEST_F(SessionPeersTest, AHelloThatIsCutAnywhereEndsItsSession) {
  const std::string hello = FrameBytes(kHelloFrame, 0, "\x08\x01");
  for (size_t bytes = 1; bytes < hello.size(); ++bytes) {
    SCOPED_TRACE(bytes);
    TestSession session(*stub_, /*says_hello=*/false);
    session.Send(hello.substr(0, bytes));
    EXPECT_EQ(session.Receive().kind, 0);
    EXPECT_EQ(session.Finish().error_code(), grpc::INVALID_ARGUMENT);
  }
}

// Numbers from the lowest to the highest, of requests that are refused.
TEST_F(SessionPeersTest, ManyRequestsLeaveNothing) {
  TestSession session(*stub_);
  const uint64_t count = ManyRequests();
  const uint64_t step = UINT64_MAX / count;
  const uint64_t window = session.hello().limits().max_requests();
  int64_t resident_bytes = 0;
  for (uint64_t done = 0; done < count;) {
    std::string frames;
    std::set<uint64_t> numbers;
    for (; numbers.size() < window && done < count; ++done) {
      numbers.insert(1 + done * step);
      frames += RequestFrame(1 + done * step, {});
    }
    ASSERT_TRUE(session.Send(frames));
    while (!numbers.empty()) {
      const TestFrame frame = session.Receive();
      ASSERT_EQ(ErrorOf(frame).code(), grpc::INVALID_ARGUMENT);
      ASSERT_EQ(numbers.erase(frame.number), 1u);
    }
    if (resident_bytes == 0) resident_bytes = ResidentBytesOf(getpid());
  }
  if (kMemoryTells) {
    EXPECT_LT(ResidentBytesOf(getpid()) - resident_bytes, 16 * static_cast<int64_t>(kMiB));
  }
  session.SendNoMore();
  EXPECT_EQ(session.Receive().kind, 0);
  EXPECT_TRUE(session.Finish().ok());
}

TEST_F(SessionPeersTest, CancelsInALoopDoNoHarm) {
  TestSession session(*stub_);
  InjectFaults("kernel=*,slow=200000,count=1");
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  session.Send(OnesRequestFrame(1));
  EXPECT_TRUE(Await([&] { return HostCount(OPSERVE_HOST_LAUNCHES) > launches; }));
  session.Send(OnesRequestFrame(2) + OnesRequestFrame(3));
  // Of one that runs, of one that waits, and of others that are none.
  std::string cancels;
  for (int i = 0; i < kMaxFrames; ++i) {
    cancels += FrameBytes(kCancelFrame, i % 4 == 3 ? UINT64_MAX - i : i % 4);
  }
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(session.Send(cancels));
    if (i % 25 == 0) ExpectOthersServed();
  }
  std::set<uint64_t> answered;
  for (int i = 0; i < 3; ++i) {
    const TestFrame frame = session.Receive();
    answered.insert(frame.number);
    EXPECT_TRUE(IsAllOnes(frame) || ErrorOf(frame).code() == grpc::CANCELLED);
  }
  EXPECT_EQ(answered, (std::set<uint64_t>{1, 2, 3}));
  ExpectPong(session);
}

// They cost their sender nothing, as empty HTTP/2 frames do.
TEST_F(SessionPeersTest, MessagesWithoutFramesEndTheirConnection) {
  TestSession session(*stub_);
  int sent = 0;
  while (sent < 1'000'000 && session.Send("")) ++sent;
  EXPECT_EQ(session.Receive().kind, 0);
  EXPECT_EQ(session.Finish().error_code(), grpc::UNAVAILABLE) << sent;
}

}  // namespace
}  // namespace opserve::server
