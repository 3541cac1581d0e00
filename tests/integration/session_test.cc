// Session as clients see it: what is answered when, what ends a session, and what holds one back.

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
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

class SessionTest : public LaunchCountingTest {
 protected:
  static double Ended(const InProcessDaemon& daemon, const char* result) {
    return MetricValue(daemon.daemon(), "opserve_sessions_total", {{"result", result}});
  }
  static void AwaitSessions(const InProcessDaemon& daemon, int sessions) {
    EXPECT_TRUE(
        Await([&] { return MetricValue(daemon.daemon(), "opserve_sessions", {}) == sessions; }));
  }
};

TEST_F(SessionTest, TheDaemonSaysWhatItTakes) {
  Config config = InProcessDaemon::DefaultConfig();
  config.stream_window = 7;
  InProcessDaemon daemon(config);
  const auto stub = NewStub(daemon.target());
  TestSession session(*stub);

  EXPECT_EQ(session.hello().version(), 1u);
  EXPECT_EQ(session.hello().limits().max_requests(), 7u);
  EXPECT_EQ(session.hello().limits().max_request_bytes(), 1u << 20);
  EXPECT_EQ(session.hello().limits().max_message_bytes(), (1u << 20) + (64u << 10));
  EXPECT_THAT(session.hello().build(), HasSubstr("opserved "));
  AwaitSessions(daemon, 1);
  session.SendNoMore();
  EXPECT_TRUE(session.Finish().ok());
  AwaitSessions(daemon, 0);
  EXPECT_EQ(Ended(daemon, "closed"), 1);
}

TEST_F(SessionTest, EveryRequestOfEveryMessageIsAnsweredAndThenTheSessionEnds) {
  InProcessDaemon daemon;
  const auto stub = NewStub(daemon.target());
  TestSession session(*stub);
  const uint64_t window = session.hello().limits().max_requests();
  constexpr int kMessages = 5;

  std::set<uint64_t> answered;
  uint64_t number = 100;  // numbers begin anywhere
  for (int message = 0; message < kMessages; ++message) {
    std::string frames;
    for (uint64_t i = 0; i < window; ++i) {
      number += 1 + i % 2;  // and may skip
      frames += OnesRequestFrame(number, static_cast<int64_t>(number));
    }
    ASSERT_TRUE(session.Send(frames));
    for (uint64_t i = 0; i < window; ++i) {
      const TestFrame frame = session.Receive();
      EXPECT_TRUE(IsAllOnes(frame, static_cast<int64_t>(frame.number))) << frame.number;
      answered.insert(frame.number);
    }
  }
  session.SendNoMore();

  EXPECT_EQ(answered.size(), kMessages * window);
  EXPECT_EQ(session.Receive().kind, 0);
  EXPECT_TRUE(session.Finish().ok());
  EXPECT_TRUE(Await([&] { return daemon.HeldByRequests() == 0; }));
  EXPECT_EQ(MetricValue(daemon.daemon(), "opserve_session_messages_total", {}), kMessages + 1);
  EXPECT_EQ(MetricValue(daemon.daemon(), "opserve_session_frames_total", {}),
            static_cast<double>(kMessages * window + 1));
}

TEST_F(SessionTest, RequestsThatWereSentAreAnsweredAfterTheClientHasClosedItsSide) {
  InProcessDaemon daemon;
  const auto stub = NewStub(daemon.target());
  TestSession session(*stub);

  session.Send(OnesRequestFrame(1) + OnesRequestFrame(2, 1 << 16));
  session.SendNoMore();

  std::set<uint64_t> answered;
  for (int i = 0; i < 2; ++i) {
    const TestFrame frame = session.Receive();
    EXPECT_TRUE(IsAllOnes(frame, frame.number == 1 ? 10 : 1 << 16));
    answered.insert(frame.number);
  }
  EXPECT_EQ(answered.size(), 2u);
  EXPECT_TRUE(session.Finish().ok());
}

TEST_F(SessionTest, AnswersComeInTheOrderInWhichTheyEnd) {
  InProcessDaemon daemon;
  const auto stub = NewStub(daemon.target());
  TestSession session(*stub);
  CountLaunches();
  InjectFaults("kernel=*,slow=1000000");
  session.Send(OnesRequestFrame(1));
  AwaitLaunches(1);

  session.Send(OnesRequestFrame(2) + OnesRequestFrame(3) + OnesRequestFrame(4));

  std::set<uint64_t> first_three;
  for (int i = 0; i < 3; ++i) first_three.insert(session.Receive().number);
  EXPECT_EQ(first_three, (std::set<uint64_t>{2, 3, 4}));
  EXPECT_TRUE(IsAllOnes(session.Receive()));
}

TEST_F(SessionTest, AnErrorConcernsItsRequestAlone) {
  InProcessDaemon daemon;
  const auto stub = NewStub(daemon.target());
  TestSession session(*stub);
  v1::ExecuteRequest unknown = OnesRequest(10, "");
  unknown.mutable_invocations(0)->set_operator_("Nonsense");
  v1::ExecuteRequest misshapen = OnesRequest(10, "");
  misshapen.mutable_invocations(0)->mutable_inputs(1)->mutable_tensor()->set_shape(0, 9);
  struct Case {
    const char* name;
    std::string frame;
    grpc::StatusCode code;
    const char* argument;
  };
  const std::vector<Case> cases = {
      {"unknown operator", RequestFrame(1, unknown), grpc::INVALID_ARGUMENT, ""},
      {"wrong shape", RequestFrame(3, misshapen), grpc::INVALID_ARGUMENT, "self"},
      {"no time", OnesRequestFrame(5, 1 << 16, absl::Microseconds(1)), grpc::DEADLINE_EXCEEDED, ""},
      {"no request", RequestFrame(7, {}), grpc::INVALID_ARGUMENT, "invocations"},
      {"not protobuf", FrameBytes(kRequestFrame, 9, std::string(12, '\0') + "\x7a\x7f"),
       grpc::INVALID_ARGUMENT, ""},
  };
  uint64_t number = 1;
  for (const Case& c : cases) {
    session.Send(c.frame);
    const TestFrame frame = session.Receive();
    const v1::StatusDetails error = ErrorOf(frame);
    EXPECT_EQ(frame.number, number) << c.name;
    EXPECT_EQ(error.code(), c.code) << c.name << ": " << error.message();
    EXPECT_EQ(DetailOf(error).argument(), c.argument) << c.name;
    EXPECT_NE(DetailOf(error).reason(), "") << c.name;
    session.Send(OnesRequestFrame(number + 1));
    EXPECT_TRUE(IsAllOnes(session.Receive())) << c.name;
    number += 2;
  }
  session.SendNoMore();

  EXPECT_TRUE(session.Finish().ok());
  EXPECT_TRUE(Await([&] { return daemon.HeldByRequests() == 0; }));
}

TEST_F(SessionTest, ATraceIsTheRequestsOwn) {
  InProcessDaemon daemon;
  const auto stub = NewStub(daemon.target());
  TestSession session(*stub);
  v1::ExecuteRequest request = OnesRequest(10, "");
  request.set_want_receipt(true);
  const std::string trace(32, 'c');

  session.Send(RequestFrame(1, request, absl::ZeroDuration(),
                            absl::StrCat("00-", trace, "-00000000000000ab-01")));
  v1::ExecuteResponse response;
  ASSERT_TRUE(response.ParseFromString(session.Receive().body));
  EXPECT_EQ(response.receipt().trace_id(), trace);
  session.Send(RequestFrame(2, request));
  ASSERT_TRUE(response.ParseFromString(session.Receive().body));
  EXPECT_NE(response.receipt().trace_id(), trace);
}

TEST_F(SessionTest, CancelEndsItsRequestAlone) {
  InProcessDaemon daemon(InProcessDaemon::OneLane());
  const auto stub = NewStub(daemon.target());
  TestSession session(*stub);
  CountLaunches();
  InjectFaults("kernel=*,slow=500000");
  session.Send(OnesRequestFrame(1));
  AwaitLaunches(1);
  session.Send(OnesRequestFrame(2) + OnesRequestFrame(3));
  EXPECT_TRUE(Await([&] { return CountRequests(*stub) == 3; }));

  // (77 was never sent; 2 is cancelled twice.)
  session.Send(FrameBytes(kCancelFrame, 2) + FrameBytes(kCancelFrame, 77) +
               FrameBytes(kCancelFrame, 2));

  const TestFrame cancelled = session.Receive();
  EXPECT_EQ(cancelled.number, 2u);
  EXPECT_EQ(ErrorOf(cancelled).code(), grpc::CANCELLED);
  EXPECT_TRUE(IsAllOnes(session.Receive()));
  EXPECT_TRUE(IsAllOnes(session.Receive()));
  EXPECT_EQ(Launches(), 2);
  session.Send(FrameBytes(kCancelFrame, 1));  // is answered already
  session.SendNoMore();
  EXPECT_TRUE(session.Finish().ok());
}

TEST_F(SessionTest, APingIsAnsweredBeforeTheRequestsBehindIt) {
  InProcessDaemon daemon;
  const auto stub = NewStub(daemon.target());
  TestSession session(*stub);

  session.Send(FrameBytes(kPingFrame, 42) + OnesRequestFrame(1) + FrameBytes(kPongFrame, 0));

  const TestFrame pong = session.Receive();
  EXPECT_EQ(pong.kind, kPongFrame);
  EXPECT_EQ(pong.number, 42u);
  EXPECT_TRUE(IsAllOnes(session.Receive()));
}

std::string Repeated(const std::string& frame, int times) {
  std::string frames;
  for (int i = 0; i < times; ++i) frames += frame;
  return frames;
}

TEST_F(SessionTest, AFrameThatBreaksTheProtocolEndsItsSessionAfterWhatIsInProgress) {
  Config config = InProcessDaemon::DefaultConfig();
  config.stream_window = 4;
  InProcessDaemon daemon(config);
  const auto stub = NewStub(daemon.target());
  TestSession other(*stub);
  const std::string hello = FrameBytes(kHelloFrame, 0, "\x08\x01");
  std::string with_flags = FrameBytes(kPingFrame, 1);
  with_flags[5] = 1;
  std::string many;
  for (uint64_t number = 2; number <= 5; ++number) many += OnesRequestFrame(number);
  struct Case {
    bool says_hello;
    std::string frames;
    const char* rule;
  };
  const std::vector<Case> cases = {
      {false, OnesRequestFrame(1), "the first frame must be hello"},
      {false, FrameBytes(kPingFrame, 1), "the first frame must be hello"},
      {false, FrameBytes(kHelloFrame, 0), "hello has the version 0"},
      {false, FrameBytes(kHelloFrame, 0, "\x08"), "hello is no SessionHello"},
      {false, FrameBytes(kHelloFrame, 1, "\x08\x01"), "hello has the number 1, not 0"},
      {true, hello, "a second hello"},
      {true, FrameBytes(0, 1), "a frame of the unknown kind 0"},
      {true, FrameBytes(13, 1), "a frame of the unknown kind 13"},
      {true, FrameBytes(kPartFrame, 1), "frames of the kind 12 come from the daemon only"},
      {true, FrameBytes(kAnswerFrame, 1), "frames of the kind 3 come from the daemon only"},
      {true, FrameBytes(kErrorFrame, 1), "frames of the kind 4 come from the daemon only"},
      {true, FrameBytes(kGoingAwayFrame, 1), "frames of the kind 8 come from the daemon only"},
      {true, FrameBytes(kCancelFrame, 1, "x"), "a cancel has no body"},
      {true, FrameBytes(kPingFrame, 1, "x"), "a ping has no body"},
      {true, FrameBytes(kPongFrame, 1, "x"), "a pong has no body"},
      {true, with_flags, "the flags of a frame and the two bytes behind them must be 0"},
      {true, OnesRequestFrame(1), "request 1 does not come after 1"},
      {true, OnesRequestFrame(0), "request 0 does not come after 1"},
      {true, FrameBytes(kPingFrame, 1).substr(0, 15), "a frame's header is cut off after 15 bytes"},
      {true, OnesRequestFrame(2).substr(0, 40), "longer than the rest of its message, 24"},
      {true, FrameBytes(kRequestFrame, 2, std::string(11, '\0')),
       "the body of a request has 11 bytes, at least 12 expected"},
      {true, FrameBytes(kRequestFrame, 2, std::string(8, '\0') + std::string("\1\1\0\0", 4)),
       "a traceparent of 257 bytes, at most 256 allowed"},
      {true, OnesRequestFrame(2, 1 << 17), "at most 1048576 allowed"},
      {true, many, "more than 4 requests without an answer, with request 5"},
      {true, Repeated(FrameBytes(kCancelFrame, 99), 4097), "a message has more than 4096 frames"},
      {true, std::string((1 << 20) + (64 << 10), '\0'), "bytes, at most 1114112 allowed"},
  };
  for (const Case& c : cases) {
    TestSession session(*stub, c.says_hello);
    if (c.says_hello) {
      CountLaunches();
      InjectFaults("kernel=*,slow=100000,count=4");
      session.Send(OnesRequestFrame(1));
      AwaitLaunches(1);
    }
    session.Send(c.frames);

    if (c.says_hello) {
      bool has_first = false;
      for (TestFrame frame = session.Receive(); frame.kind != 0; frame = session.Receive()) {
        EXPECT_TRUE(IsAllOnes(frame)) << static_cast<int>(frame.kind) << " " << c.rule;
        has_first = has_first || frame.number == 1;
      }
      EXPECT_TRUE(has_first) << c.rule;
    }
    EXPECT_EQ(session.Receive().kind, 0) << c.rule;
    const grpc::Status status = session.Finish();
    EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT) << c.rule;
    EXPECT_THAT(status.error_message(), HasSubstr("the session's protocol is broken: "));
    EXPECT_THAT(status.error_message(), HasSubstr(c.rule));
    EXPECT_EQ(DetailOf(status).reason(), "invalid") << c.rule;
    ClearFaults();
  }
  other.Send(OnesRequestFrame(1));
  EXPECT_TRUE(IsAllOnes(other.Receive()));
  AwaitSessions(daemon, 1);
  EXPECT_EQ(Ended(daemon, "protocol"), static_cast<double>(cases.size()));
  EXPECT_TRUE(Await([&] { return daemon.HeldByRequests() == 0; }));
}

// A client that sends pings and reads nothing: the daemon keeps a window of answers, and reads no
// more.
TEST_F(SessionTest, AnswersThatNobodyReadsHoldTheSessionBack) {
  Config config = InProcessDaemon::DefaultConfig();
  config.stream_window = 4;
  InProcessDaemon daemon(config);
  const auto stub = NewStub(daemon.target());
  TestSession session(*stub);
  constexpr int kPings = 4000;
  constexpr int kMessages = 400;
  const std::string pings = Repeated(FrameBytes(kPingFrame, 5), kPings);

  std::thread sender([&] {
    for (int i = 0; i < kMessages; ++i) session.Send(pings);
    session.SendNoMore();
  });
  // What it has read by the time that others were served; the rest waits for the reader.
  const auto others = NewStub(daemon.target());
  for (int i = 0; i < 200; ++i) {
    grpc::ClientContext context;
    v1::ExecuteResponse response;
    EXPECT_TRUE(others->Execute(&context, OnesRequest(10, ""), &response).ok());
  }
  const double read = MetricValue(daemon.daemon(), "opserve_session_messages_total", {});
  int pongs = 0;
  while (session.Receive().kind == kPongFrame) ++pongs;
  sender.join();

  EXPECT_LT(read, kMessages / 2);
  EXPECT_EQ(pongs, kMessages * kPings);
  EXPECT_LT(session.messages(), pongs / 100);  // they travel together
  EXPECT_TRUE(session.Finish().ok());
}

TEST_F(SessionTest, ABrokenSessionLeavesNothingHeld) {
  InProcessDaemon daemon(InProcessDaemon::OneLane());
  const auto stub = NewStub(daemon.target());
  TestSession session(*stub);
  CountLaunches();
  InjectFaults("kernel=*,hang");
  std::string frames;
  for (uint64_t number = 1; number <= 5; ++number) frames += OnesRequestFrame(number);
  session.Send(frames);
  AwaitLaunches(1);
  EXPECT_TRUE(Await([&] { return CountRequests(*stub) == 5; }));

  session.Cancel();

  EXPECT_EQ(session.Finish().error_code(), grpc::CANCELLED);
  EXPECT_TRUE(Await([&] { return daemon.HeldByRequests() == 0; }));
  EXPECT_EQ(Launches(), 1);
  AwaitSessions(daemon, 0);
  EXPECT_EQ(Ended(daemon, "broken"), 1);
}

TEST_F(SessionTest, ASessionGoesAwayBeforeItsConnectionsAgeEndsIt) {
  Config config = InProcessDaemon::OneLane();
  config.max_connection_age = absl::Seconds(1);
  config.max_connection_age_grace = absl::Minutes(2);
  InProcessDaemon daemon(config);
  const auto stub = NewStub(daemon.target());
  TestSession session(*stub);
  CountLaunches();
  InjectFaults("kernel=*,slow=2000000");
  session.Send(OnesRequestFrame(1));
  AwaitLaunches(1);

  const TestFrame frame = session.Receive();
  v1::SessionGoingAway going;
  ASSERT_TRUE(going.ParseFromString(frame.body));
  EXPECT_EQ(frame.kind, kGoingAwayFrame);
  EXPECT_EQ(going.last_request(), 1u);
  EXPECT_THAT(going.reason(), HasSubstr("age"));
  // What comes now is not started, and a ping shows that it was read.
  session.Send(OnesRequestFrame(2) + FrameBytes(kPingFrame, 3));
  EXPECT_EQ(session.Receive().kind, kPongFrame);
  const TestFrame answer = session.Receive();
  EXPECT_EQ(answer.number, 1u);
  EXPECT_TRUE(IsAllOnes(answer));
  session.SendNoMore();
  EXPECT_EQ(session.Receive().kind, 0);
  // gRPC closes a connection of that age with its last stream. If the client writes at that moment,
  // its side of flow control say, it takes the broken pipe for the end, not the status behind it.
  const grpc::Status end = session.Finish();
  EXPECT_TRUE(end.ok() || end.error_code() == grpc::StatusCode::UNAVAILABLE)
      << end.error_code() << ": " << end.error_message();
  EXPECT_EQ(Launches(), 1);
}

TEST_F(SessionTest, ADrainBeginsWithGoingAway) {
  auto daemon = std::make_unique<InProcessDaemon>(InProcessDaemon::OneLane());
  const auto stub = NewStub(daemon->target());
  TestSession session(*stub);
  TestSession idle(*stub);
  CountLaunches();
  InjectFaults("kernel=*,slow=1000000");
  session.Send(OnesRequestFrame(1));
  AwaitLaunches(1);
  int64_t cut_off = -1;
  std::thread drain([&] { cut_off = daemon->daemon().Drain(); });

  // The slow request still runs.
  EXPECT_EQ(idle.Receive().kind, kGoingAwayFrame);
  TestFrame frame = session.Receive();
  EXPECT_EQ(frame.kind, kGoingAwayFrame);
  session.Send(OnesRequestFrame(2));  // is not started
  TestSession late(*stub);
  EXPECT_EQ(late.Receive().kind, kGoingAwayFrame);
  late.SendNoMore();
  EXPECT_EQ(late.Receive().kind, 0);
  frame = session.Receive();
  EXPECT_EQ(frame.kind, kAnswerFrame);
  EXPECT_EQ(frame.number, 1u);
  session.SendNoMore();
  EXPECT_EQ(session.Receive().kind, 0);
  EXPECT_TRUE(session.Finish().ok());
  drain.join();
  EXPECT_EQ(cut_off, 0);
  EXPECT_EQ(Launches(), 1);
  daemon.reset();
  EXPECT_EQ(idle.Receive().kind, 0);
  EXPECT_EQ(idle.Finish().error_code(), grpc::UNAVAILABLE);
}

}  // namespace
}  // namespace opserve::server
