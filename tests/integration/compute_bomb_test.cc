// Small requests for large computations: too large ones are refused, and those that begin can be
// stopped.

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/integration/door.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/requests.h"

namespace opserve::server {
namespace {

using ::testing::HasSubstr;

// Would take a device of two cores minutes.
constexpr int64_t kLongWork = int64_t{1} << 38;

// KlDivBackward summed over `elements` elements, all of which are one float of the payload.
v1::ExecuteRequest SumRequest(int64_t elements) {
  v1::ExecuteRequest request;
  const float one = 1;
  request.add_payloads(std::string(reinterpret_cast<const char*>(&one), sizeof(one)));
  v1::Invocation* invocation = request.add_invocations();
  invocation->set_operator_("KlDivBackward");
  for (const char* name : {"grad_output", "self", "target"}) {
    v1::NamedTensor* input = invocation->add_inputs();
    input->set_name(name);
    input->mutable_tensor()->set_dtype(v1::DATA_TYPE_FLOAT);
    input->mutable_tensor()->set_payload(0);
  }
  v1::Tensor* target = invocation->mutable_inputs(2)->mutable_tensor();
  target->add_shape(elements);
  target->add_strides(0);
  return request;
}

// Lets a request of kLongWork begin.
Config PatientConfig() {
  Config config = InProcessDaemon::OneLane();
  config.max_request_work = uint64_t{1} << 40;
  config.queue_work_per_tenant = uint64_t{1} << 44;
  config.max_workspace_bytes = 32 << 20;
  config.max_workspace_ratio = uint64_t{1} << 40;
  return config;
}

class ComputeBombTest : public ::testing::TestWithParam<Door> {
 protected:
  static double InFlight(const InProcessDaemon& daemon) {
    return MetricValue(daemon.daemon(), "opserve_requests_in_flight", {{"device", "0"}});
  }
  static double Aborts(const InProcessDaemon& daemon, const std::string& kind) {
    return MetricValue(daemon.daemon(), "opserve_stream_aborts_total",
                       {{"device", "0"}, {"kind", kind}});
  }
  static double QueuedWork(const InProcessDaemon& daemon) {
    return MetricValue(daemon.daemon(), "opserve_queue_work_elements",
                       {{"device", "0"}, {"tenant", "default"}});
  }
  static double Timeouts(const InProcessDaemon& daemon) {
    return MetricValue(daemon.daemon(), "opserve_device_errors_total",
                       {{"device", "0"}, {"kind", "timeout"}});
  }
  static void ExpectServes(InProcessDaemon& daemon) {
    EXPECT_TRUE(Await([&] { return InFlight(daemon) == 0; })) << "the kernel was stopped";
    EXPECT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(1000)), 1000));
  }
};

TEST_P(ComputeBombTest, TooMuchWorkIsRefusedWhileOthersAreServed) {
  InProcessDaemon daemon;
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  std::vector<grpc::Status> refusals(14);
  std::vector<std::thread> attackers;
  for (grpc::Status& refusal : refusals) {
    attackers.emplace_back([&daemon, &refusal] {
      DoorCaller caller(daemon.target(), GetParam());
      v1::ExecuteResponse response;
      refusal = caller.Execute(SumRequest(int64_t{1} << 40), &response, absl::Minutes(1));
    });
  }
  constexpr int kCalls = 50;
  for (int i = 0; i < kCalls; ++i) {
    EXPECT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(1000)), 1000));
  }
  for (std::thread& attacker : attackers) attacker.join();

  for (const grpc::Status& refusal : refusals) {
    EXPECT_EQ(refusal.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_EQ(DetailOf(refusal).reason(), "work_limit");
    EXPECT_EQ(DetailOf(refusal).operator_(), "KlDivBackward");
    EXPECT_EQ(DetailOf(refusal).retry_pushback_ms(), -1);
    EXPECT_THAT(refusal.error_message(),
                HasSubstr("KlDivBackward: computes 1099511627776 elements, at most 4294967296"));
  }
  EXPECT_EQ(HostCount(OPSERVE_HOST_LAUNCHES) - launches, kCalls) << "none of the attackers'";
  EXPECT_EQ(MetricValue(daemon.daemon(), "opserve_admission_rejections_total",
                        {{"tenant", "default"}, {"reason", "work_limit"}}),
            14);
}

TEST_P(ComputeBombTest, CancellationStopsTheKernel) {
  InProcessDaemon daemon(PatientConfig());
  DoorCaller caller(daemon.target(), GetParam());
  grpc::Status status;
  v1::ExecuteResponse response;
  std::thread thread([&] { status = caller.Execute(SumRequest(kLongWork), &response); });
  const bool has_begun = Await([&] { return InFlight(daemon) == 1; });
  caller.Cancel();
  thread.join();
  EXPECT_TRUE(has_begun);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  ExpectServes(daemon);
  EXPECT_EQ(Timeouts(daemon), 0);
}

TEST_P(ComputeBombTest, DeadlinesStopTheKernel) {
  for (const bool is_callers : {true, false}) {
    SCOPED_TRACE(is_callers ? "the caller's" : "the daemon's default");
    Config config = PatientConfig();
    if (!is_callers) config.default_deadline = absl::Seconds(2);
    InProcessDaemon daemon(config);
    DoorCaller caller(daemon.target(), GetParam());
    v1::ExecuteResponse response;
    const grpc::Status status =
        caller.Execute(SumRequest(kLongWork), &response,
                       is_callers ? absl::Milliseconds(200) : absl::ZeroDuration());
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << status.error_message();
    ExpectServes(daemon);
    EXPECT_EQ(Timeouts(daemon), 0) << "no fault of the device";
  }
}

// A call of `op` on tensors that stand for kLongWork elements or products, and have few results.
struct LongCall {
  const char* op;
  std::vector<std::pair<const char*, std::vector<int64_t>>> inputs;  // names and shapes
  const char* attributes = "";                                       // of v1.Invocation
};

v1::ExecuteRequest RequestOf(const LongCall& call) {
  v1::ExecuteRequest request;
  const float one = 1;
  request.add_payloads(std::string(reinterpret_cast<const char*>(&one), sizeof(one)));
  v1::Invocation* invocation = request.add_invocations();
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(call.attributes, invocation));
  invocation->set_operator_(call.op);
  for (const auto& [name, shape] : call.inputs) {
    v1::NamedTensor* input = invocation->add_inputs();
    input->set_name(name);
    input->mutable_tensor()->set_dtype(v1::DATA_TYPE_FLOAT);
    input->mutable_tensor()->set_payload(0);
    for (const int64_t extent : shape) {
      input->mutable_tensor()->add_shape(extent);
      input->mutable_tensor()->add_strides(0);
    }
  }
  return request;
}

// Few results must not be taken for little work, which a lane does itself and cannot stop.
TEST_P(ComputeBombTest, KernelsOfFewResultsStop) {
  constexpr int64_t kLongSide = int64_t{1} << 19;
  const LongCall calls[] = {
      {"Mm", {{"self", {1, kLongWork}}, {"mat2", {kLongWork, 1}}}},
      {"Dot", {{"self", {kLongWork}}, {"tensor", {kLongWork}}}},
      {"Max", {{"self", {kLongWork}}}},
      {"Topk", {{"self", {kLongWork}}}, "attributes { name: 'k' value { int64_value: 1 } }"},
      {"AvgPool2d",
       {{"self", {1, 1, kLongSide, kLongSide}}},
       "attributes { name: 'kernel_size' value { int64_list { values: [524288, 524288] } } }"
       "attributes { name: 'strides' value { int64_list { values: [1, 1] } } }"
       "attributes { name: 'paddings' value { int64_list { values: [0, 0] } } }"},
      // Nor may they need memory for each element that they read.
      {"AvgPool2d",
       {{"self", {1, 1, 1, kLongWork}}},
       "attributes { name: 'kernel_size' value { int64_list { values: [1, 1048576] } } }"
       "attributes { name: 'strides' value { int64_list { values: [1, 1048576] } } }"
       "attributes { name: 'paddings' value { int64_list { values: [0, 0] } } }"},
      {"UpsampleNearest2dBackward",
       {{"grad_out", {1, 1, kLongWork, 1}}},
       "attributes { name: 'output_size' value { int64_list { values: [274877906944, 1] } } }"
       "attributes { name: 'input_size' value { int64_list { values: [1, 1, 1, 1] } } }"},
  };
  InProcessDaemon daemon(PatientConfig());
  DoorCaller caller(daemon.target(), GetParam());
  for (const LongCall& call : calls) {
    SCOPED_TRACE(call.op);
    v1::ExecuteResponse response;
    const grpc::Status status = caller.Execute(RequestOf(call), &response, absl::Milliseconds(200));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << status.error_message();
    ExpectServes(daemon);
  }
}

TEST_P(ComputeBombTest, TheExecutionTimeoutStopsTheKernel) {
  Config config = PatientConfig();
  config.execution_timeout = absl::Milliseconds(200);
  InProcessDaemon daemon(config);
  DoorCaller caller(daemon.target(), GetParam());
  v1::ExecuteResponse response;
  const grpc::Status status = caller.Execute(SumRequest(kLongWork), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_THAT(status.error_message(), HasSubstr("the device did not finish within 200ms"));
  EXPECT_EQ(Aborts(daemon, "timeout"), 1);
  EXPECT_EQ(Timeouts(daemon), 1);
  ExpectServes(daemon);
}

TEST_P(ComputeBombTest, ATenantsQueueTakesABoundedAmountOfWork) {
  Config config = PatientConfig();
  config.max_request_work = kLongWork;
  config.queue_work_per_tenant = kLongWork + 1;
  InProcessDaemon daemon(config);
  // The first executes, the second waits, and the third finds no room.
  std::vector<std::unique_ptr<DoorCaller>> callers;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    DoorCaller& caller =
        *callers.emplace_back(std::make_unique<DoorCaller>(daemon.target(), GetParam()));
    threads.emplace_back([&] {
      v1::ExecuteResponse response;
      caller.Execute(SumRequest(kLongWork), &response);
    });
    EXPECT_TRUE(Await([&] {
      return InFlight(daemon) == 1 && QueuedWork(daemon) == static_cast<double>(i * kLongWork);
    }));
  }
  DoorCaller caller(daemon.target(), GetParam());
  v1::ExecuteResponse response;
  const grpc::Status refusal = caller.Execute(SumRequest(2), &response);
  EXPECT_EQ(refusal.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(DetailOf(refusal).reason(), "work_limit");
  EXPECT_GT(DetailOf(refusal).retry_pushback_ms(), 0);
  for (const auto& waiting : callers) waiting->Cancel();
  for (std::thread& thread : threads) thread.join();
  ExpectServes(daemon);
  EXPECT_EQ(QueuedWork(daemon), 0);
}

INSTANTIATE_TEST_SUITE_P(Doors, ComputeBombTest, BothDoors(), DoorName);

}  // namespace
}  // namespace opserve::server
