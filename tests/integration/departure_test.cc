// Large results of requests in a session, which leave device memory part by part: what they are,
// what they hold meanwhile, what ends them early, and what then is left.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
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

constexpr uint64_t kWindowBytes = 1 << 20;
// Of a result of 16 MiB, which no connection takes while nobody reads.
constexpr std::pair<int64_t, int64_t> kLarge = {2048, 2048};

using Shapes = std::vector<std::pair<int64_t, int64_t>>;

std::string Floats(int64_t count, int64_t step) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i * step);
  return std::string(reinterpret_cast<const char*>(values.data()), count * sizeof(float));
}

// A few bytes that make large results: each a matrix whose elements count from 0 on.
v1::ExecuteRequest Counting(const Shapes& shapes) {
  v1::ExecuteRequest request;
  for (const auto& [rows, columns] : shapes) {
    v1::Invocation* add = request.add_invocations();
    add->set_operator_("Add");
    for (const bool is_self : {true, false}) {
      v1::NamedTensor* input = add->add_inputs();
      input->set_name(is_self ? "self" : "other");
      v1::Tensor& tensor = *input->mutable_tensor();
      tensor.set_dtype(v1::DATA_TYPE_FLOAT);
      tensor.add_shape(rows);
      tensor.add_shape(columns);
      tensor.add_strides(is_self ? 1 : 0);
      tensor.add_strides(is_self ? 0 : 1);
      tensor.set_payload(request.payloads_size());
      request.add_payloads(is_self ? Floats(rows, columns) : Floats(columns, 1));
    }
    request.add_results()->set_invocation(request.invocations_size() - 1);
  }
  return request;
}

bool IsCounting(const TestFrame& frame, const Shapes& shapes) {
  v1::ExecuteResponse response;
  if (frame.kind != kAnswerFrame || !response.ParseFromString(frame.body)) return false;
  if (response.payloads_size() != static_cast<int>(shapes.size())) return false;
  for (int i = 0; i < response.payloads_size(); ++i) {
    if (response.payloads(i) != Floats(shapes[i].first * shapes[i].second, 1)) return false;
  }
  return true;
}

class DepartureTest : public LaunchCountingTest {
 protected:
  static Config LargeDevices() {
    Config config = InProcessDaemon::DefaultConfig();
    config.workspace_max_bytes = 400 << 20;
    config.max_output_ratio = 1 << 20;  // requests are small
    return config;
  }

  double Departing() const {
    return MetricValue(daemon_.daemon(), "opserve_session_requests_departing", {});
  }
  double Departures(const char* result) const {
    return MetricValue(daemon_.daemon(), "opserve_session_departures_total", {{"result", result}});
  }
  double Answered(const char* op) const {
    double answered = 0;
    for (const char* device : {"0", "1"}) {
      const double value = MetricValue(
          daemon_.daemon(), "opserve_requests_total",
          {{"operator", op}, {"code", "OK"}, {"tenant", "default"}, {"device", device}});
      if (value > 0) answered += value;  // no sample before the first
    }
    return answered;
  }
  uint64_t BookedBytes() const {
    uint64_t bytes = 0;
    for (const auto& service : daemon_.daemon().scheduler().devices()) {
      bytes += service->queue().booked_bytes();
    }
    return bytes;
  }
  // Page-locked memory that is lent.
  double HostBytes() const {
    return MetricValue(daemon_.daemon(), "opserve_pinned_pool_allocated_bytes",
                       {{"numa_node", "any"}});
  }
  void ExpectNothingHeld() {
    EXPECT_TRUE(Await(
        [&] { return daemon_.HeldByRequests() == 0 && BookedBytes() == 0 && Departing() == 0; }));
  }

  InProcessDaemon daemon_{LargeDevices()};
  const std::unique_ptr<v1::OperatorService::Stub> stub_ = NewStub(daemon_.target());
};

TEST_F(DepartureTest, ResultsAreWhatTheyWereWhereverWindowsBegin) {
  const std::pair<int64_t, int64_t> window = {1024, 256}, empty = {0, 5}, medium = {160, 160};
  uint64_t number = 0;
  TestSession session(*stub_, /*says_hello=*/true, kTakesParts);
  for (const Shapes& shapes : std::vector<Shapes>{{window},
                                                  {{1025, 256}},
                                                  {{1031, 1031}},
                                                  {window, window},
                                                  {empty, window, empty, empty, window, empty},
                                                  {empty, {3, 7}, window, {1, 1}, empty},
                                                  Shapes(30, medium)}) {
    SCOPED_TRACE(number);
    session.Send(RequestFrame(++number, Counting(shapes)));

    EXPECT_TRUE(IsCounting(session.ReceiveEnd(), shapes));
  }
  EXPECT_EQ(Departures("sent"), static_cast<double>(number));
  ExpectNothingHeld();
}

TEST_F(DepartureTest, SmallResultsAndTheReceiptAreAsEver) {
  TestSession session(*stub_, /*says_hello=*/true, kTakesParts);
  v1::ExecuteRequest small = Counting({{1023, 256}});
  session.Send(RequestFrame(1, small));
  EXPECT_TRUE(IsCounting(session.ReceiveEnd(), {{1023, 256}}));
  EXPECT_EQ(Departures("sent"), 0);

  v1::ExecuteRequest large = Counting({{1024, 256}});
  large.set_want_receipt(true);
  session.Send(RequestFrame(2, large));
  v1::ExecuteResponse response;
  ASSERT_TRUE(response.ParseFromString(session.ReceiveEnd().body));
  EXPECT_EQ(response.receipt().copied_from_device_bytes(), kWindowBytes);
  EXPECT_EQ(Departures("sent"), 1);
}

TEST_F(DepartureTest, WhatNobodyReadsStaysOnTheDevice) {
  TestSession session(*stub_, /*says_hello=*/true, kTakesParts);
  const double before = HostBytes();
  session.Send(RequestFrame(1, Counting({kLarge})));
  ASSERT_TRUE(Await([&] { return Departing() == 1; }));

  // The first frame, so that the rest has been waiting.
  EXPECT_EQ(session.Receive().kind, kPartFrame);
  EXPECT_GE(BookedBytes(), uint64_t{16} << 20);
  EXPECT_LE(HostBytes() - before, 3 * kWindowBytes);

  TestFrame frame;
  while ((frame = session.Receive()).kind == kPartFrame) {
    EXPECT_LE(HostBytes() - before, 3 * kWindowBytes);
  }
  EXPECT_EQ(frame.kind, kAnswerFrame);
  ExpectNothingHeld();
  EXPECT_EQ(Departures("sent"), 1);
}

TEST_F(DepartureTest, OtherRequestsAreAnsweredMeanwhile) {
  TestSession session(*stub_, /*says_hello=*/true, kTakesParts);
  session.Send(RequestFrame(1, Counting({kLarge})));
  ASSERT_TRUE(Await([&] { return Departing() == 1; }));

  session.Send(OnesRequestFrame(2));
  ASSERT_TRUE(Await([&] { return Answered("L1LossBackward") == 1; }));
  TestFrame frame;
  int parts = 0;
  while ((frame = session.Receive()).kind == kPartFrame) ++parts;

  EXPECT_EQ(frame.number, 2u);
  EXPECT_TRUE(IsAllOnes(frame));
  EXPECT_LT(parts, 40) << "of 64";
  while ((frame = session.Receive()).kind == kPartFrame) {
  }
  EXPECT_EQ(frame.kind, kAnswerFrame);
}

TEST_F(DepartureTest, FewOfASessionLeaveAtOnce) {
  TestSession session(*stub_, /*says_hello=*/true, kTakesParts);
  constexpr int kRequests = 12;
  for (int number = 1; number <= kRequests; ++number) {
    session.Send(RequestFrame(number, Counting({kLarge})));
  }
  ASSERT_TRUE(Await([&] { return Departing() == 8; }));

  for (int i = 0; i < kRequests; ++i) {
    EXPECT_LE(Departing(), 8);
    EXPECT_TRUE(IsCounting(session.ReceiveEnd(), {kLarge}));
  }
  ExpectNothingHeld();
}

TEST_F(DepartureTest, ClientsThatTakeNoPartsGetWholeAnswers) {
  TestSession session(*stub_);
  session.Send(RequestFrame(1, Counting({{1024, 256}})));

  EXPECT_TRUE(IsCounting(session.Receive(), {{1024, 256}}));
  EXPECT_EQ(Departures("sent"), 0);
}

TEST_F(DepartureTest, WhatEndsOneEarlyLeavesNothing) {
  const std::string request = RequestFrame(1, Counting({kLarge}));
  const auto begin = [&](TestSession& session, const std::string& frames) {
    session.Send(frames);
    EXPECT_EQ(session.Receive().kind, kPartFrame);
  };
  {
    SCOPED_TRACE("cancel");
    TestSession session(*stub_, /*says_hello=*/true, kTakesParts);
    begin(session, request);
    session.Send(FrameBytes(kCancelFrame, 1));
    EXPECT_EQ(ErrorOf(session.ReceiveEnd()).code(), grpc::CANCELLED);
    session.Send(OnesRequestFrame(2));
    EXPECT_TRUE(IsAllOnes(session.ReceiveEnd()));
    ExpectNothingHeld();
    EXPECT_EQ(Departures("cancelled"), 1);
  }
  {
    SCOPED_TRACE("deadline");
    TestSession session(*stub_, /*says_hello=*/true, kTakesParts);
    begin(session, RequestFrame(1, Counting({kLarge}), absl::Milliseconds(700)));
    // Without a reader.
    ExpectNothingHeld();
    EXPECT_EQ(Departures("expired"), 1);
    EXPECT_EQ(ErrorOf(session.ReceiveEnd()).code(), grpc::DEADLINE_EXCEEDED);
  }
  {
    SCOPED_TRACE("the client is gone");
    TestSession session(*stub_, /*says_hello=*/true, kTakesParts);
    begin(session, request);
    session.Cancel();
    EXPECT_EQ(session.Finish().error_code(), grpc::CANCELLED);
    ExpectNothingHeld();
    EXPECT_EQ(Departures("cancelled"), 2);
  }
  {
    SCOPED_TRACE("the client sends no more, and reads on");
    TestSession session(*stub_, /*says_hello=*/true, kTakesParts);
    session.Send(request);
    session.SendNoMore();
    EXPECT_TRUE(IsCounting(session.ReceiveEnd(), {kLarge}));
    EXPECT_TRUE(session.Finish().ok());
    ExpectNothingHeld();
  }
}

TEST_F(DepartureTest, EachFailedCopyEndsItsRequestAlone) {
  TestSession session(*stub_, /*says_hello=*/true, kTakesParts);
  const Shapes shapes = {{4 * 1024, 256}};
  uint64_t number = 0;
  for (int copy = 1; copy <= 4; ++copy) {
    SCOPED_TRACE(copy);
    InjectFaults(absl::StrCat("call=aclrtMemcpy,nth=", copy, ",code=107002"));
    session.Send(RequestFrame(++number, Counting(shapes)));
    EXPECT_THAT(ErrorOf(session.ReceiveEnd()).message(), HasSubstr("aclrtMemcpy"));
    ClearFaults();

    session.Send(RequestFrame(++number, Counting(shapes)));
    EXPECT_TRUE(IsCounting(session.ReceiveEnd(), shapes));
    ExpectNothingHeld();
  }
  EXPECT_EQ(Departures("failed"), 4);
}

TEST_F(DepartureTest, WithoutMemoryForAWindowTheRequestFails) {
  TestSession session(*stub_, /*says_hello=*/true, kTakesParts);
  InjectFaults("call=aclrtMallocHost,count=all,code=207001");
  session.Send(RequestFrame(1, Counting({kLarge})));
  EXPECT_EQ(ErrorOf(session.ReceiveEnd()).code(), grpc::RESOURCE_EXHAUSTED);
  ClearFaults();
  ExpectNothingHeld();
  EXPECT_EQ(Departures("failed"), 1);
}

TEST_F(DepartureTest, ALostDeviceEndsThemSoThatTheyMayBeRepeated) {
  TestSession session(*stub_, /*says_hello=*/true, kTakesParts);
  session.Send(RequestFrame(1, Counting({kLarge})));
  EXPECT_EQ(session.Receive().kind, kPartFrame);

  InjectFaults("device=0,lost;device=1,lost");
  const TestFrame frame = session.ReceiveEnd();
  ClearFaults();

  EXPECT_EQ(ErrorOf(frame).code(), grpc::UNAVAILABLE) << ErrorOf(frame).message();
  daemon_.AwaitReady();
  session.Send(RequestFrame(2, Counting({kLarge})));
  EXPECT_TRUE(IsCounting(session.ReceiveEnd(), {kLarge}));
  ExpectNothingHeld();
}

TEST_F(DepartureTest, ADeviceThatDrainsSendsThem) {
  TestSession session(*stub_, /*says_hello=*/true, kTakesParts);
  session.Send(RequestFrame(1, Counting({kLarge})));
  EXPECT_EQ(session.Receive().kind, kPartFrame);
  for (const auto& service : daemon_.daemon().scheduler().devices()) {
    ASSERT_TRUE(service->BeginDrain().ok());
  }
  // Not before the results have left, which nobody reads yet.
  int left = 0;
  for (const auto& service : daemon_.daemon().scheduler().devices()) {
    left += absl::IsDeadlineExceeded(service->AwaitDrained(absl::Now() + absl::Milliseconds(300)));
  }
  EXPECT_EQ(left, 1);

  TestFrame frame;
  while ((frame = session.Receive()).kind == kPartFrame) {
  }
  EXPECT_EQ(frame.kind, kAnswerFrame) << ErrorOf(frame).message();
  for (const auto& service : daemon_.daemon().scheduler().devices()) {
    EXPECT_TRUE(service->AwaitDrained(absl::Now() + absl::Seconds(60)).ok());
  }
  for (const auto& service : daemon_.daemon().scheduler().devices()) {
    EXPECT_TRUE(service->Resume(absl::Now() + absl::Seconds(60)).ok());
  }
  ExpectNothingHeld();
}

}  // namespace
}  // namespace opserve::server
