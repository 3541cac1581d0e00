// Programs that run longer than one wait for the device may take: they go on while their parts end
// in time, and end between parts where they must.
#include <memory>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "opserve/v1/operator_service.grpc.pb.h"
#include "tests/adding_program.h"
#include "tests/await.h"
#include "tests/integration/door.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/execute_stream_calls.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/launch_counting_test.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/tensor_calls.h"

namespace opserve::server {
namespace {

constexpr int kLongChain = 60;
// Of each kernel: the program takes four times as long as one wait may.
constexpr char kSlowAdds[] = "kernel=aclnnAdd,slow=20000,count=all";

class LongProgramsTest : public LaunchCountingTest, public testing::WithParamInterface<Door> {
 protected:
  static Config ShortWaits() {
    Config config = InProcessDaemon::OneLane();
    config.execution_timeout = absl::Milliseconds(300);
    return config;
  }
  LongProgramsTest() {
    v1::PrepareRequest request = AddingProgram("Add", kLongChain, 2);
    request.mutable_program()->add_results()->set_invocation(kLongChain - 1);
    v1::PrepareResponse prepared;
    EXPECT_TRUE(calls_.Prepare(request, &prepared).ok());
    request_.mutable_prepared()->set_program(prepared.handle());
    request_.mutable_prepared()->add_residents(
        calls_.Upload({.bytes = Bytes({1, 2})}).response.handle());
    request_.add_payloads(Bytes({1, 1}));
  }
  ~LongProgramsTest() override {
    ClearFaults();
    daemon_.EndLeases();
    EXPECT_TRUE(Await([this] { return daemon_.HeldByRequests() == 0; }))
        << daemon_.HeldByRequests() << " held";
  }

  grpc::Status Run(absl::Duration timeout = absl::Minutes(1)) {
    v1::ExecuteResponse response;
    const grpc::Status status = caller_.Execute(request_, &response, timeout);
    EXPECT_TRUE(!status.ok() || response.payloads(0) == Bytes({kLongChain + 1, kLongChain + 2}));
    return status;
  }

  // A call that is cancelled once some kernels were launched.
  grpc::Status RunAndLeave() {
    std::thread leaving([&] {
      AwaitLaunches(5);
      caller_.Cancel();
    });
    v1::ExecuteResponse response;
    const grpc::Status status = caller_.Execute(request_, &response);
    leaving.join();
    return status;
  }
  double Value(const char* family, const MetricLabels& labels) {
    return MetricValue(daemon_.daemon(), family, labels);
  }

  InProcessDaemon daemon_{ShortWaits()};
  TensorCalls calls_{daemon_.target()};
  DoorCaller caller_{daemon_.target(), GetParam()};
  v1::ExecuteRequest request_;
};

TEST_P(LongProgramsTest, RunAsLongAsTheirPartsEndInTime) {
  InjectFaults(kSlowAdds);
  // The first time nothing is known of the kernels, afterwards how long they take.
  for (int i = 0; i < 3; ++i) {
    const grpc::Status status = Run();
    EXPECT_TRUE(status.ok()) << ToStatus(status);
  }
  EXPECT_EQ(Value("opserve_device_state", {{"device", "0"}, {"state", "ready"}}), 1);
}

TEST_P(LongProgramsTest, EndAtAKernelThatHangsWithoutTheRest) {
  for (const bool is_known : {false, true}) {
    SCOPED_TRACE(is_known);
    if (is_known) {
      InjectFaults(kSlowAdds);
      EXPECT_TRUE(Run().ok());
    }
    CountLaunches();
    InjectFaults("kernel=aclnnAdd,nth=30,hang");
    const grpc::Status status = Run();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL) << ToStatus(status);
    EXPECT_NE(status.error_message().find("did not finish within 300ms"), std::string::npos);
    EXPECT_GE(Launches(), 30);
    EXPECT_LE(Launches(), 32);  // the others of its part
    ClearFaults();
  }
  EXPECT_TRUE(Await([this] { return Run().ok(); }));
}

TEST_P(LongProgramsTest, EndBetweenPartsWhenTheirCallerLeavesOrTheirTimeIsOver) {
  InjectFaults(kSlowAdds);
  CountLaunches();
  // A program that is known to take longer would not begin.
  EXPECT_EQ(Run(absl::Milliseconds(400)).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(Await([this] {
    return Value("opserve_deadline_misses_total",
                 {{"operator", "program"}, {"stage", "execute"}}) == 1;
  }));
  EXPECT_LT(Launches(), kLongChain);
  for (const int left : {1, 2}) {
    SCOPED_TRACE(left);
    CountLaunches();
    EXPECT_EQ(RunAndLeave().error_code(), grpc::StatusCode::CANCELLED);
    EXPECT_TRUE(Await([&] {
      return Value("opserve_cancelled_requests_total", {{"stage", "execute"}}) == left;
    }));
    EXPECT_LT(Launches(), kLongChain);
    EXPECT_TRUE(Run().ok());  // known from now on
  }
}

INSTANTIATE_TEST_SUITE_P(Doors, LongProgramsTest, AllDoors(), DoorName);

}  // namespace
}  // namespace opserve::server
