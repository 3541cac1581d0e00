// Announced requests of a session: payloads that come in chunks, what ends them early, and what
// then is left.

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/await.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/execute_stream_calls.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/launch_counting_test.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/session_calls.h"

namespace opserve::server {
namespace {

using testing::HasSubstr;

constexpr int64_t kCount = 1 << 20;                        // elements; a payload of 4 MiB
constexpr uint64_t kPayload = kCount * sizeof(float);      // bytes
constexpr uint64_t kTotal = 2 * kPayload + sizeof(float);  // of all three payloads
constexpr uint64_t kWindow = 1 << 20;                      // bytes granted at once, at most
constexpr uint64_t kChunk = 256 << 10;

// For payloads of 48 MiB; before the first daemon of the process.
const bool kDevicesAreLarge = setenv("OPSERVE_HOST_DEVICE_MEMORY", "512M", 1) == 0;

class AnnouncementTest : public LaunchCountingTest {
 protected:
  // The payloads of OnesRequest(count), one behind the other.
  static std::string OnesBytes(int64_t count) {
    std::string bytes;
    const v1::ExecuteRequest request = OnesRequest(count, "");
    for (const std::string& payload : request.payloads()) bytes += payload;
    return bytes;
  }

  // The credit of the next frame, which is one for this request.
  static uint64_t ReceiveCredit(TestSession& session, uint64_t number) {
    const TestFrame frame = session.Receive();
    EXPECT_EQ(frame.kind, kCreditFrame) << ErrorOf(frame).message();
    EXPECT_EQ(frame.number, number);
    return CreditOf(frame);
  }

  // Sends payloads of `sizes`, which are `bytes` together, in chunks of at most `chunk` bytes. A
  // frame that came before all were sent and is no credit; else none.
  static TestFrame SendChunks(TestSession& session, uint64_t number,
                              const std::vector<uint64_t>& sizes, const std::string& bytes,
                              uint64_t chunk) {
    uint64_t credit = 0, sent = 0;
    for (const uint64_t size : sizes) {
      for (uint64_t left = size; left > 0;) {
        while (credit == 0) {
          const TestFrame frame = session.Receive();
          if (frame.kind != kCreditFrame) return frame;
          credit += CreditOf(frame);
        }
        const uint64_t part = std::min({left, chunk, credit});
        session.Send(FrameBytes(kChunkFrame, number, bytes.substr(sent, part)));
        sent += part;
        left -= part;
        credit -= part;
      }
    }
    return {};
  }
  // The same, and how the request ended.
  static TestFrame SendPayloads(TestSession& session, uint64_t number,
                                const std::vector<uint64_t>& sizes, const std::string& bytes,
                                uint64_t chunk) {
    const TestFrame early = SendChunks(session, number, sizes, bytes, chunk);
    return early.kind != 0 ? early : session.ReceiveEnd();
  }

  static std::vector<uint64_t> OnesSizes(int64_t count) {
    const uint64_t bytes = count * sizeof(float);
    return {sizeof(float), bytes, bytes};
  }
  static std::string AnnounceOnes(uint64_t number, int64_t count = kCount,
                                  absl::Duration timeout = absl::ZeroDuration()) {
    return AnnouncementFrame(number, OnesProgram(count), OnesSizes(count), timeout);
  }

  static void ExpectNothingHeld(InProcessDaemon& daemon) {
    EXPECT_TRUE(Await([&] {
      double unwritten = 0, booked = 0;
      for (const auto& service : daemon.daemon().scheduler().devices()) {
        unwritten += static_cast<double>(service->queue().unwritten_bytes());
        booked += static_cast<double>(service->queue().booked_bytes());
      }
      return daemon.HeldByRequests() == 0 && unwritten == 0 && booked == 0;
    }));
  }
};

TEST_F(AnnouncementTest, TheDaemonSaysThatItTakesThem) {
  InProcessDaemon daemon;
  const auto stub = NewStub(daemon.target());

  // The second: those of requests with an identity, a key or a prepared program, too.
  EXPECT_EQ(TestSession(*stub).hello().features() & (1 | 4), 1u | 4u);
}

TEST_F(AnnouncementTest, PayloadsMayBeCutAnywhere) {
  InProcessDaemon daemon;
  const auto stub = NewStub(daemon.target());
  TestSession session(*stub);
  uint64_t number = 0;
  struct Case {
    int64_t count;
    uint64_t chunk;
  };
  for (const Case& c : std::vector<Case>{
           {1, 1}, {300, 7}, {100'000, 4097}, {kCount, kChunk}, {kCount + 1, 100'003}}) {
    SCOPED_TRACE(absl::StrCat(c.count, " elements in chunks of ", c.chunk));
    session.Send(AnnounceOnes(++number, c.count));

    EXPECT_TRUE(IsAllOnes(
        SendPayloads(session, number, OnesSizes(c.count), OnesBytes(c.count), c.chunk), c.count));
  }
  session.SendNoMore();
  EXPECT_TRUE(session.Finish().ok());
  ExpectNothingHeld(daemon);
}

TEST_F(AnnouncementTest, NoMoreIsGrantedThanTheWindowAndEachByteOnce) {
  InProcessDaemon daemon;
  const auto stub = NewStub(daemon.target());
  TestSession session(*stub);
  const std::string bytes = OnesBytes(kCount);
  session.Send(AnnounceOnes(1));

  EXPECT_EQ(ReceiveCredit(session, 1), kWindow);
  session.Send(FrameBytes(kChunkFrame, 1, bytes.substr(0, sizeof(float))) +
               FrameBytes(kChunkFrame, 1, bytes.substr(sizeof(float), kChunk)));
  uint64_t sent = sizeof(float) + kChunk;
  uint64_t granted = kWindow;
  TestFrame frame;
  while ((frame = session.Receive()).kind == kCreditFrame) {
    granted += CreditOf(frame);
    EXPECT_LE(granted, sent + kWindow);
    EXPECT_LE(granted, kTotal);
    while (granted - sent >= kChunk || (granted == kTotal && sent < kTotal)) {
      const uint64_t payload_end =
          sent < sizeof(float) + kPayload ? sizeof(float) + kPayload : kTotal;
      const uint64_t part = std::min({kChunk, granted - sent, payload_end - sent});
      session.Send(FrameBytes(kChunkFrame, 1, bytes.substr(sent, part)));
      sent += part;
    }
  }
  EXPECT_TRUE(IsAllOnes(frame, kCount));
  EXPECT_EQ(granted, kTotal);
}

TEST_F(AnnouncementTest, OtherRequestsAreAnsweredMeanwhile) {
  InProcessDaemon daemon;
  const auto stub = NewStub(daemon.target());
  TestSession session(*stub);
  session.Send(AnnounceOnes(1) + AnnounceOnes(2, 100));
  EXPECT_EQ(ReceiveCredit(session, 1), kWindow);
  EXPECT_EQ(ReceiveCredit(session, 2), 804u);

  session.Send(OnesRequestFrame(3));
  EXPECT_TRUE(IsAllOnes(session.Receive()));

  const std::string bytes = OnesBytes(100);
  session.Send(FrameBytes(kChunkFrame, 2, bytes.substr(0, 4)) +
               FrameBytes(kChunkFrame, 2, bytes.substr(4, 400)) +
               FrameBytes(kChunkFrame, 2, bytes.substr(404)));
  const TestFrame second = session.Receive();
  EXPECT_EQ(second.number, 2u);
  EXPECT_TRUE(IsAllOnes(second, 100));
}

TEST_F(AnnouncementTest, ErrorsComeBeforeAnythingIsSent) {
  Config config = InProcessDaemon::DefaultConfig();
  config.resident_max_bytes_per_tenant = 1 << 20;
  InProcessDaemon daemon(config);
  const auto stub = NewStub(daemon.target());
  TestSession session(*stub);
  v1::ExecuteRequest unknown = OnesProgram(10);
  unknown.mutable_invocations(0)->set_operator_("Nonsense");
  struct Case {
    const char* name;
    v1::ExecuteRequest program;
    std::vector<uint64_t> sizes;
    const char* text;
  };
  uint64_t number = 0;
  for (const Case& c : std::vector<Case>{
           {"unknown operator", unknown, OnesSizes(10), "no such operator"},
           {"another size", OnesProgram(10), {4, 40, 44}, "payload 2 has 44 bytes"},
           {"too few payloads", OnesProgram(10), {4, 40}, "payload 2 of a message with 2"},
           {"too many payloads", OnesProgram(10), {4, 40, 40, 4}, "payload 3 belongs to no tensor"},
           {"beyond any sum", OnesProgram(10), {4, UINT64_MAX, UINT64_MAX}, "at most"}}) {
    SCOPED_TRACE(c.name);
    session.Send(AnnouncementFrame(++number, c.program, c.sizes));
    const TestFrame frame = session.Receive();
    EXPECT_EQ(frame.number, number);
    EXPECT_THAT(ErrorOf(frame).message(), HasSubstr(c.text));
  }
  session.Send(OnesRequestFrame(++number));
  EXPECT_TRUE(IsAllOnes(session.Receive()));
  ExpectNothingHeld(daemon);
}

TEST_F(AnnouncementTest, ChunksThatBreakARuleEndTheSession) {
  InProcessDaemon daemon;
  const auto stub = NewStub(daemon.target());
  const std::string first = FrameBytes(kChunkFrame, 1, "1234");
  struct Case {
    const char* name;
    std::string frames;
    const char* rule;
  };
  std::string beyond = first;
  for (uint64_t sent = 4; sent < kWindow; sent += kChunk) {
    beyond += FrameBytes(kChunkFrame, 1, std::string(std::min(kChunk, kWindow - sent), 'x'));
  }
  for (const Case& c : std::vector<Case>{
           {"empty", FrameBytes(kChunkFrame, 1), "a chunk of 0 bytes, 1 to 262144 allowed"},
           {"too large", first + FrameBytes(kChunkFrame, 1, std::string(kChunk + 1, 'x')),
            "a chunk of 262145 bytes, 1 to 262144 allowed"},
           {"across payloads", FrameBytes(kChunkFrame, 1, "12345"),
            "a chunk of 5 bytes, of payload 0 4 are to come"},
           {"of no request", FrameBytes(kChunkFrame, 2, "1234"), "request 2, which expects none"},
           {"after a cancel", first + FrameBytes(kCancelFrame, 1) + FrameBytes(kChunkFrame, 1, "x"),
            "request 1, which expects none"},
           {"a second announcement", AnnounceOnes(1), "request 1 does not come after 1"},
           {"without sizes", FrameBytes(kAnnouncementFrame, 2, std::string(12, '\0')),
            "an announcement without sizes of payloads"},
           {"a credit", FrameBytes(kCreditFrame, 1, std::string(8, '\0')),
            "frames of the kind 11 come from the daemon only"}}) {
    SCOPED_TRACE(c.name);
    TestSession session(*stub);
    session.Send(AnnounceOnes(1));
    EXPECT_EQ(ReceiveCredit(session, 1), kWindow);

    session.Send(c.frames);

    while (session.Receive().kind != 0) {
    }
    const grpc::Status status = session.Finish();
    EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr(c.rule));
    ExpectNothingHeld(daemon);
  }
  // More than was granted: copies may free the window meanwhile, so it is sent until it is too
  // much.
  InjectFaults("call=aclrtMemcpy,slow=200000");
  TestSession session(*stub);
  session.Send(AnnounceOnes(1));
  EXPECT_EQ(ReceiveCredit(session, 1), kWindow);
  session.Send(beyond);
  session.Send(FrameBytes(kChunkFrame, 1, "x"));
  while (session.Receive().kind != 0) {
  }
  EXPECT_THAT(session.Finish().error_message(),
              HasSubstr("a chunk of 1 bytes, 0 more were granted"));
  ExpectNothingHeld(daemon);
}

TEST_F(AnnouncementTest, WhatEndsOneEarlyLeavesNothing) {
  InProcessDaemon daemon;
  const auto stub = NewStub(daemon.target());
  const std::string chunk = FrameBytes(kChunkFrame, 1, "1234");
  {
    SCOPED_TRACE("cancel");
    TestSession session(*stub);
    session.Send(AnnounceOnes(1));
    ReceiveCredit(session, 1);
    session.Send(chunk + FrameBytes(kCancelFrame, 1));
    EXPECT_EQ(ErrorOf(session.Receive()).code(), grpc::CANCELLED);
    session.Send(OnesRequestFrame(2));
    EXPECT_TRUE(IsAllOnes(session.Receive()));
    ExpectNothingHeld(daemon);
  }
  {
    SCOPED_TRACE("deadline");
    TestSession session(*stub);
    session.Send(AnnounceOnes(1, kCount, absl::Milliseconds(500)));
    ReceiveCredit(session, 1);
    EXPECT_EQ(ErrorOf(session.Receive()).code(), grpc::DEADLINE_EXCEEDED);
    session.Send(chunk);  // was on its way
    session.Send(FrameBytes(kCancelFrame, 1) + OnesRequestFrame(2));
    EXPECT_TRUE(IsAllOnes(session.Receive()));
    ExpectNothingHeld(daemon);
  }
  {
    SCOPED_TRACE("the client sends no more");
    TestSession session(*stub);
    session.Send(AnnounceOnes(1));
    ReceiveCredit(session, 1);
    session.Send(chunk);
    session.SendNoMore();
    EXPECT_EQ(ErrorOf(session.Receive()).code(), grpc::CANCELLED);
    EXPECT_TRUE(session.Finish().ok());
    ExpectNothingHeld(daemon);
  }
  {
    SCOPED_TRACE("the client is gone");
    TestSession session(*stub);
    session.Send(AnnounceOnes(1));
    ReceiveCredit(session, 1);
    session.Send(chunk);
    session.Cancel();
    EXPECT_EQ(session.Finish().error_code(), grpc::CANCELLED);
    ExpectNothingHeld(daemon);
  }
}

// One device, which has memory for one request of AnnounceOnes at a time.
class ShortOfMemoryTest : public AnnouncementTest {
 protected:
  static Config OneAtATime() {
    Config config = InProcessDaemon::DefaultConfig();
    config.devices = {0};
    // Its payloads, and the run's memory: the payloads again and the result.
    config.workspace_max_bytes = 5 * kPayload + (1 << 20);
    return config;
  }
  size_t Waiting() const { return daemon_.daemon().scheduler().devices().front()->queue().depth(); }

  InProcessDaemon daemon_{OneAtATime()};
  const std::unique_ptr<v1::OperatorService::Stub> stub_ = NewStub(daemon_.target());
};

TEST_F(ShortOfMemoryTest, TheCreditIsWithheldUntilThereIsRoom) {
  TestSession session(*stub_);
  session.Send(AnnounceOnes(1) + AnnounceOnes(2) + AnnounceOnes(3));
  EXPECT_TRUE(Await([&] { return Waiting() == 2; }));
  EXPECT_EQ(ReceiveCredit(session, 1), kWindow);
  // What needs little goes before them.
  session.Send(OnesRequestFrame(4));
  EXPECT_TRUE(IsAllOnes(session.Receive()));
  const std::string bytes = OnesBytes(kCount);
  uint64_t current = 1, sent = 0, credit = kWindow, answered = 0;
  while (true) {
    while (credit > 0) {
      const uint64_t payload_end = sent < sizeof(float)       ? sizeof(float)
                                   : sent < kTotal - kPayload ? kTotal - kPayload
                                                              : kTotal;
      const uint64_t part = std::min({kChunk, credit, payload_end - sent});
      session.Send(FrameBytes(kChunkFrame, current, bytes.substr(sent, part)));
      sent += part;
      credit -= part;
    }
    const TestFrame frame = session.Receive();
    if (frame.kind != kCreditFrame) {
      ASSERT_TRUE(IsAllOnes(frame, kCount)) << ErrorOf(frame).message();
      EXPECT_EQ(frame.number, ++answered);
      if (answered == 3) break;
      continue;
    }
    if (frame.number != current) {
      EXPECT_EQ(sent, kTotal) << "request " << frame.number << " has room before " << current;
      EXPECT_EQ(frame.number, ++current);
      sent = 0;
    }
    credit = CreditOf(frame);
  }
  ExpectNothingHeld(daemon_);
}

TEST_F(ShortOfMemoryTest, WhatEndsOneThatWaitsLeavesNothing) {
  {
    SCOPED_TRACE("cancel");
    TestSession session(*stub_);
    session.Send(AnnounceOnes(1) + AnnounceOnes(2));
    ReceiveCredit(session, 1);
    EXPECT_TRUE(Await([&] { return Waiting() == 1; }));
    session.Send(FrameBytes(kCancelFrame, 2));
    const TestFrame frame = session.Receive();
    EXPECT_EQ(frame.number, 2u);
    EXPECT_EQ(ErrorOf(frame).code(), grpc::CANCELLED);
    EXPECT_EQ(Waiting(), 0u);
  }
  {
    SCOPED_TRACE("deadline");
    TestSession session(*stub_);
    session.Send(AnnounceOnes(1) + AnnounceOnes(2, kCount, absl::Milliseconds(300)));
    ReceiveCredit(session, 1);
    const TestFrame frame = session.Receive();
    EXPECT_EQ(frame.number, 2u);
    EXPECT_EQ(ErrorOf(frame).code(), grpc::DEADLINE_EXCEEDED);
  }
  {
    SCOPED_TRACE("the client is gone");
    TestSession session(*stub_);
    session.Send(AnnounceOnes(1) + AnnounceOnes(2));
    ReceiveCredit(session, 1);
    EXPECT_TRUE(Await([&] { return Waiting() == 1; }));
    session.Cancel();
    session.Finish();
  }
  EXPECT_TRUE(Await([&] { return Waiting() == 0; }));
  ExpectNothingHeld(daemon_);
}

TEST_F(ShortOfMemoryTest, AChunkWithoutACreditEndsTheSession) {
  TestSession session(*stub_);
  session.Send(AnnounceOnes(1) + AnnounceOnes(2));
  ReceiveCredit(session, 1);
  session.Send(FrameBytes(kChunkFrame, 2, "1234"));
  while (session.Receive().kind != 0) {
  }
  EXPECT_THAT(session.Finish().error_message(),
              HasSubstr("a chunk of 4 bytes, 0 more were granted"));
  ExpectNothingHeld(daemon_);
}

// A call needs the memory of a request that still arrives: its chunks, and its run, go before the
// call, though that is more urgent.
TEST_F(ShortOfMemoryTest, WhatHasItsMemoryGoesOnBesideWhatWaitsForIt) {
  TestSession session(*stub_);
  session.Send(AnnounceOnes(1, kCount, absl::Minutes(5)));
  ReceiveCredit(session, 1);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  v1::ExecuteResponse response;
  grpc::Status status;
  std::thread call([&] { status = stub_->Execute(&context, OnesRequest(kCount, ""), &response); });
  EXPECT_TRUE(Await([&] { return Waiting() == 1; }));
  session.Send(FrameBytes(kChunkFrame, 1, OnesBytes(kCount).substr(0, 4)));
  const std::string rest = OnesBytes(kCount).substr(4);
  uint64_t credit = kWindow - 4;
  for (uint64_t sent = 0; sent < rest.size();) {
    while (credit == 0) credit += ReceiveCredit(session, 1);
    const uint64_t part = std::min({kChunk, credit, kPayload - sent % kPayload});
    session.Send(FrameBytes(kChunkFrame, 1, rest.substr(sent, part)));
    sent += part;
    credit -= part;
  }
  EXPECT_TRUE(IsAllOnes(session.ReceiveEnd(), kCount));
  call.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
  ExpectNothingHeld(daemon_);
}

TEST_F(AnnouncementTest, AClientThatStallsIsToldSo) {
  Config config = InProcessDaemon::DefaultConfig();
  config.upload_stall_timeout = absl::Milliseconds(100);
  config.upload_min_bytes_per_second = 1 << 30;
  InProcessDaemon daemon(config);
  const auto stub = NewStub(daemon.target());
  TestSession session(*stub);
  session.Send(AnnounceOnes(1));
  ReceiveCredit(session, 1);

  const TestFrame frame = session.Receive();

  EXPECT_THAT(ErrorOf(frame).message(), HasSubstr("the request stalled after 0 of its payloads'"));
  ExpectNothingHeld(daemon);
}

TEST_F(AnnouncementTest, LargeAnswersComeInPartsToWhomTakesThem) {
  Config config = InProcessDaemon::DefaultConfig();
  config.max_message_bytes = kPayload;  // so that the answer is larger
  InProcessDaemon daemon(config);
  const auto stub = NewStub(daemon.target());
  TestSession session(*stub, /*says_hello=*/true, kTakesParts);
  session.Send(AnnounceOnes(1));

  EXPECT_TRUE(
      IsAllOnes(SendPayloads(session, 1, OnesSizes(kCount), OnesBytes(kCount), kChunk), kCount));

  // What the header has more is in the frame of the answer.
  EXPECT_EQ(session.parts(), kPayload / kChunk);

  TestSession other(*stub);
  other.Send(AnnounceOnes(1));
  EXPECT_THAT(ErrorOf(other.ReceiveEnd()).message(), HasSubstr("--max_message_bytes"));
  ExpectNothingHeld(daemon);
}

TEST_F(AnnouncementTest, ACancelEndsAnAnswerThatIsBeingSent) {
  constexpr int64_t kLarge = 12 << 20;  // elements, whose answer no connection takes at once
  Config config = InProcessDaemon::DefaultConfig();
  config.workspace_max_bytes = 256 << 20;
  InProcessDaemon daemon(config);
  const auto stub = NewStub(daemon.target());
  TestSession session(*stub, /*says_hello=*/true, kTakesParts);
  session.Send(AnnounceOnes(1, kLarge));
  TestFrame frame = SendChunks(session, 1, OnesSizes(kLarge), OnesBytes(kLarge), kChunk);
  ASSERT_EQ(frame.kind, 0) << ErrorOf(frame).message();
  do {
    frame = session.Receive();
  } while (frame.kind == kCreditFrame);
  ASSERT_EQ(frame.kind, kPartFrame) << ErrorOf(frame).message();

  session.Send(FrameBytes(kCancelFrame, 1) + OnesRequestFrame(2));

  int parts = 1;
  for (; (frame = session.Receive()).kind == kPartFrame; ++parts) EXPECT_EQ(frame.number, 1u);
  EXPECT_EQ(ErrorOf(frame).code(), grpc::CANCELLED);
  EXPECT_LT(parts, kLarge * sizeof(float) / kChunk);
  EXPECT_TRUE(IsAllOnes(session.Receive()));
  ExpectNothingHeld(daemon);
}

TEST_F(AnnouncementTest, AFailedCopyEndsItsRequestAlone) {
  InProcessDaemon daemon;
  const auto stub = NewStub(daemon.target());
  TestSession session(*stub);
  InjectFaults("call=aclrtMemcpy,nth=2,code=107002");
  session.Send(AnnounceOnes(1));

  const TestFrame failed = SendPayloads(session, 1, OnesSizes(kCount), OnesBytes(kCount), kChunk);

  EXPECT_THAT(ErrorOf(failed).message(), HasSubstr("aclrtMemcpy"));
  session.Send(FrameBytes(kCancelFrame, 1) + OnesRequestFrame(2));
  EXPECT_TRUE(IsAllOnes(session.Receive()));
  ExpectNothingHeld(daemon);
}

}  // namespace
}  // namespace opserve::server
