#include "server/run/program_runner.h"

#include <thread>

#include "absl/cleanup/cleanup.h"
#include "gmock/gmock.h"
#include "proto/status/error.h"
#include "tests/unit/server/error_detail.h"
#include "tests/unit/server/lane_fixture.h"

namespace opserve::server {
namespace {

class ProgramRunnerTest : public LaneFixture {};

TEST_F(ProgramRunnerTest, TheSecondEqualProgramFindsItsPlanAndItsMemory) {
  const auto first = RunOnes(1000);
  const auto second = RunOnes(1000);

  EXPECT_TRUE(IsAllOnes(first, 1000)) << first.status();
  EXPECT_TRUE(IsAllOnes(second, 1000)) << second.status();
  EXPECT_EQ(first->plan_misses, 1u);
  EXPECT_EQ(second->plan_hits, 1u);
  EXPECT_EQ(first->pool_outcome, DeviceMemoryPool::kGrow);
  EXPECT_NE(second->pool_outcome, DeviceMemoryPool::kGrow);
  EXPECT_EQ(second->copied_to_device_bytes, 12000u);
}

TEST_F(ProgramRunnerTest, ProgramsOfAnySizeTakeOneBlock) {
  for (int64_t count : {0, 1, 15, 16, 17, 4096, 100000}) {
    const auto result = RunOnes(count);
    EXPECT_TRUE(IsAllOnes(result, count)) << count << result.status();
  }
}

TEST_F(ProgramRunnerTest, WhatDoesNotFitIsRefusedBeforeAnythingIsLaunched) {
  Open({.max_bytes = 1 << 20, .floor_bytes = 0});
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);

  const auto result = RunOnes(100000);

  EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(result.status()), "device_memory");
  EXPECT_EQ(HostCount(OPSERVE_HOST_LAUNCHES), launches);
  EXPECT_TRUE(IsAllOnes(RunOnes(1000), 1000));
}

TEST_F(ProgramRunnerTest, MemoryThatOthersUseIsWaitedFor) {
  Open({.max_bytes = 4 << 20, .floor_bytes = 0});
  const auto other = *StreamLane::Create(*device_, 1);
  std::optional<DeviceBuffer> taken =
      *device_->memory().Allocate({.bytes = 3 << 20, .stream = other->stream()});
  // The scrub of it, which must not come when the memory is another's.
  ASSERT_TRUE(other->Synchronize(timeout_).ok());
  std::thread releaser([&] {
    // Released while the program waits, or just before it would have to.
    taken.reset();
    device_->memory().StreamIsIdle(other->stream());
  });

  const auto result = RunOnes(200000);

  releaser.join();
  EXPECT_TRUE(IsAllOnes(result, 200000)) << result.status();
}

TEST_F(ProgramRunnerTest, TheDeadlineEndsTheWaitForMemory) {
  Open({.max_bytes = 4 << 20, .floor_bytes = 0});
  const auto other = *StreamLane::Create(*device_, 1);
  const DeviceBuffer taken =
      *device_->memory().Allocate({.bytes = 3 << 20, .stream = other->stream()});
  ASSERT_TRUE(RunOnes(10).ok());
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  const CallState call(absl::Now() + absl::Milliseconds(100));

  const auto result = RunOnes(200000, call);

  // On a slow machine the deadline passes before there is anything to wait for.
  EXPECT_THAT(ReasonOf(result.status()), testing::AnyOf("device_memory", "deadline_expired"));
  EXPECT_EQ(HostCount(OPSERVE_HOST_LAUNCHES), launches);
}

TEST_F(ProgramRunnerTest, ExpiredAndCancelledCallsAreNeverLaunched) {
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  const CallState expired(absl::Now() - absl::Seconds(1));
  CallState cancelled(absl::InfiniteFuture());
  cancelled.Cancel();

  EXPECT_EQ(RunOnes(100, expired).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(RunOnes(100, cancelled).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(HostCount(OPSERVE_HOST_LAUNCHES), launches);
}

TEST_F(ProgramRunnerTest, AKernelThatHangsIsAbortedAndTheLaneGoesOn) {
  timeout_ = absl::Milliseconds(20);
  InjectFaults("kernel=aclnnL1LossBackward,hang");

  const auto hung = RunOnes(100);

  EXPECT_EQ(hung.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(device_->stream_aborts().of(StreamAbort::kTimeout), 1u);
  timeout_ = absl::Seconds(60);
  EXPECT_TRUE(IsAllOnes(RunOnes(100), 100));
  EXPECT_EQ(device_->state(), DeviceState::kReady);
}

TEST_F(ProgramRunnerTest, WhereStreamsCannotBeAbortedTheLaneGetsAnotherOne) {
  const auto abort = std::exchange(acl_.aclrtStreamAbort, nullptr);
  const auto restore = absl::MakeCleanup([&] { acl_.aclrtStreamAbort = abort; });
  timeout_ = absl::Milliseconds(20);
  InjectFaults("kernel=aclnnL1LossBackward,hang");
  const aclrtStream hanging = lane_->stream();

  const auto hung = RunOnes(100);

  EXPECT_EQ(hung.status().code(), absl::StatusCode::kInternal);
  EXPECT_NE(lane_->stream(), hanging);
  EXPECT_EQ(device_->stream_aborts().of(StreamAbort::kAbandoned), 1u);
  EXPECT_EQ(device_->stream_aborts().total(), 1u);
  EXPECT_EQ(device_->errors().of(Fault::kTimeout), 1u);
  EXPECT_EQ(device_->errors().of(Fault::kStream), 1u);
  // What the hanging kernel may still write to is nobody's.
  EXPECT_GT(device_->memory().statistics().retired_bytes, 0u);
  timeout_ = absl::Seconds(60);
  EXPECT_TRUE(IsAllOnes(RunOnes(100), 100));
  EXPECT_EQ(device_->state(), DeviceState::kReady);
  abort(hanging);
  acl_.aclrtDestroyStream(hanging);
}

TEST_F(ProgramRunnerTest, AbortTaskEndsAKernelInProgress) {
  InjectFaults("kernel=aclnnL1LossBackward,hang");
  const uint64_t task = lane_->BeginTask();
  std::thread canceller([&] {
    ASSERT_TRUE(device_->BindThisThread().ok());
    lane_->AbortTask(task);  // before the wait or in it: it must end either way
  });

  const auto result = RunOnes(100);

  canceller.join();
  EXPECT_EQ(result.status().code(), absl::StatusCode::kCancelled);
  EXPECT_GE(device_->stream_aborts().of(StreamAbort::kCancelled), 1u);
  EXPECT_EQ(device_->stream_aborts().total(), device_->stream_aborts().of(StreamAbort::kCancelled));
  EXPECT_EQ(device_->errors().total(), 0u) << "it is no fault of the device's";
  lane_->BeginTask();
  EXPECT_TRUE(IsAllOnes(RunOnes(100), 100));
}

TEST_F(ProgramRunnerTest, MessagesOfEarlierTasksStayOutOfAnAnswer) {
  acl_.aclrtSetDevice(77);  // fails, and nothing reads its message
  lane_->BeginTask();
  InjectFaults("kernel=aclnnL1LossBackward,code=507035");

  const auto result = RunOnes(100);

  EXPECT_THAT(result.status().message(), ::testing::HasSubstr("aclnnL1LossBackward"));
  EXPECT_THAT(result.status().message(), ::testing::Not(::testing::HasSubstr("deviceId")));
}

TEST_F(ProgramRunnerTest, AbortTaskOfAnEarlierTaskHasNoEffect) {
  const uint64_t earlier = lane_->BeginTask();
  lane_->BeginTask();
  lane_->AbortTask(earlier);

  EXPECT_TRUE(IsAllOnes(RunOnes(100), 100));
}

TEST_F(ProgramRunnerTest, ALostDeviceIsQuarantined) {
  InjectFaults("device=0,lost");

  const auto result = RunOnes(100);

  EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(result.status()), "device_unavailable");
  EXPECT_EQ(device_->state(), DeviceState::kQuarantined);
  plans_.reset();
  lane_.reset();
  EXPECT_TRUE(device_->Reset().ok());
  EXPECT_EQ(device_->generation(), 1u);
  lane_ = *StreamLane::Create(*device_, 0);
  plans_ = std::make_unique<PlanCache>(acl_, 8, counters_);
  EXPECT_TRUE(IsAllOnes(RunOnes(100), 100));
}

TEST_F(ProgramRunnerTest, FaultAfterFaultQuarantinesTheDeviceButOneDoesNot) {
  InjectFaults(
      "kernel=aclnnL1LossBackward,code=507035,nth=1;"
      "kernel=aclnnL1LossBackward,code=507035,nth=3,count=3");
  EXPECT_FALSE(RunOnes(100).ok());
  EXPECT_TRUE(RunOnes(100).ok());
  EXPECT_FALSE(RunOnes(100).ok());
  EXPECT_FALSE(RunOnes(100).ok());
  EXPECT_EQ(device_->state(), DeviceState::kReady);

  EXPECT_FALSE(RunOnes(100).ok());

  EXPECT_EQ(device_->state(), DeviceState::kQuarantined);
}

TEST_F(ProgramRunnerTest, AResidentTensorFromBeforeAResetIsNotRead) {
  auto resident = std::make_shared<ResidentTensor>();
  resident->spec = {v1::DATA_TYPE_FLOAT, {100}};
  resident->device_generation = 7;
  Program program = OnesProgram(100);
  program.residents.emplace_back();
  program.invocations[0].inputs[1].source = ResidentSource{0};
  ProgramCall bound = CallOf(std::move(program));
  bound.residents.push_back({resident, "handle"});
  StageClock clock;
  LaneContext lane = context();
  const CallState call(absl::InfiniteFuture());

  const auto result = RunProgram(bound, Payloads(100), call, 0, lane, clock);

  EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(result.status()), "tensor_lost");
}

TEST_F(ProgramRunnerTest, AWorkspaceAboveTheLimitIsRefused) {
  limits_.max_bytes = 1;
  // A gradient that is summed over many rows needs a workspace.
  Program program;
  BoundInvocation& invocation = program.invocations.emplace_back();
  invocation.op = operators_.Find("KlDivBackward");
  const std::vector<Shape> shapes = {{}, {300}, {2000, 300}};
  std::vector<codec::Payload> payloads;
  for (uint32_t i = 0; i < 3; ++i) {
    BoundInput& input = invocation.inputs.emplace_back();
    ViewWhole({v1::DATA_TYPE_FLOAT, shapes[i]}, &input);
    input.source = PayloadSource{i};
    payloads.push_back(Payloads(NumElements(shapes[i]))[0]);
  }
  invocation.attributes = {int64_t{2}, false};
  invocation.input_ends = {1, 2, 3};
  invocation.outputs.push_back({.spec = {v1::DATA_TYPE_FLOAT, {300}}, .is_result = true});
  invocation.output_ends = {1};
  program.results = {{.source = {0, 0}}};
  program.input_bytes = 300 * 2001 * 4 + 4;
  program.ComputeFacts({payloads[0].size, payloads[1].size, payloads[2].size});
  const ProgramCall bound = CallOf(std::move(program));
  StageClock clock;
  LaneContext lane = context();
  const CallState call(absl::InfiniteFuture());

  const auto refused = RunProgram(bound, payloads, call, 0, lane, clock);

  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(refused.status()), "amplification");
  limits_.max_bytes = UINT64_MAX;
  const auto allowed = RunProgram(bound, payloads, call, 0, lane, clock);
  ASSERT_TRUE(allowed.ok()) << allowed.status();
  EXPECT_GT(allowed->workspace_bytes, 0u);
}

TEST_F(ProgramRunnerTest, GoldenValuesHoldOnAWellDevice) {
  LaneContext lane = context();
  EXPECT_TRUE(CheckGoldenValues(operators_, lane).ok());
  for (const LoadedOperator& op : operators_.operators()) {
    ASSERT_TRUE(op.offer->FindingOn(0).has_value()) << op.descriptor->name;
    EXPECT_TRUE(op.offer->FindingOn(0)->is_right()) << op.descriptor->name;
  }
}

TEST_F(ProgramRunnerTest, AWrongGoldenValueCostsItsOperatorOnly) {
  LaneContext lane = context();
  for (const LoadedOperator& op : operators_.operators()) {
    SCOPED_TRACE(op.descriptor->name);
    InjectFaults(absl::StrCat("kernel=", op.descriptor->stage_two, ",wrong"));
    const auto finding = CheckGoldenValue(op, lane);
    ASSERT_TRUE(finding.ok()) << finding.status();
    EXPECT_EQ(finding->verdict, GoldenVerdict::kWrong);
    EXPECT_THAT(finding->problem, ::testing::StartsWith("golden case: "));
    EXPECT_TRUE(op.offer->IsWrongOn(0));
    EXPECT_FALSE(op.is_available());  // there is no other device
    EXPECT_EQ(ReasonOf(op.CheckAvailable()), "operator_unavailable");
  }
  InjectFaults("kernel=aclnnL1LossBackward,wrong");
  EXPECT_TRUE(CheckGoldenValues(operators_, lane).ok());
  for (const LoadedOperator& op : operators_.operators()) {
    EXPECT_EQ(op.is_available(), op.descriptor->name != "L1LossBackward") << op.descriptor->name;
  }
}

TEST_F(ProgramRunnerTest, AGoldenCaseThatCannotBeRunSaysNothingOfTheOperator) {
  LaneContext lane = context();
  ASSERT_TRUE(CheckGoldenValues(operators_, lane).ok());
  InjectFaults("kernel=aclnnL1LossBackward,code=507035");
  EXPECT_EQ(CheckGoldenValues(operators_, lane).code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(operators_.Find("L1LossBackward")->is_available());
}

TEST_F(ProgramRunnerTest, NoGoldenValueRightCostsTheDevice) {
  LaneContext lane = context();
  InjectFaults("kernel=*,wrong,count=all");
  const absl::Status status = CheckGoldenValues(operators_, lane);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("computes no operator right; "));
}

}  // namespace
}  // namespace opserve::server
