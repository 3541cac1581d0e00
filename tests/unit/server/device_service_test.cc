#include "server/schedule/lanes/device_service.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/status/error.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/unit/server/device_service_fixture.h"
#include "tests/unit/server/error_detail.h"

namespace opserve::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// An execution timeout that tests wait for. It bounds golden cases, too, which must end within it
// on a busy machine.
constexpr absl::Duration kHeldTooLong = absl::Seconds(1);

TEST_F(DeviceServiceTest, ATaskRunsAndAnswers) {
  Start({0});
  const auto outcome = Submit(Nothing);
  outcome->ended.WaitForNotification();

  EXPECT_TRUE(outcome->status.ok()) << outcome->status;
  EXPECT_EQ(device(0).completed(), 1u);
  EXPECT_EQ(device(0).executing(), 0u);
}

TEST_F(DeviceServiceTest, AFullQueueRefusesWithAHint) {
  options_.queue_capacity = 1;
  Start({0});
  const auto running = SubmitBlocker();
  const auto queued = Submit(Nothing);

  const auto refused = Submit(Nothing);

  EXPECT_EQ(refused->status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused->status), "queue_full");
  EXPECT_GE(ErrorDetailOf(refused->status)->retry_pushback_ms(), 10);
  OpenGate();
  queued->ended.WaitForNotification();
  EXPECT_TRUE(queued->status.ok());
}

TEST_F(DeviceServiceTest, ACancelledTaskLeavesTheQueueAtOnce) {
  Start({0});
  const auto running = SubmitBlocker();
  auto call = std::make_shared<CallState>(absl::InfiniteFuture());
  const auto queued = Submit(Nothing, call);

  call->Cancel();

  EXPECT_TRUE(queued->ended.HasBeenNotified());
  EXPECT_EQ(queued->status.code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(queued->begun.HasBeenNotified());
  EXPECT_EQ(device(0).queued(), 0u);
  OpenGate();
}

TEST_F(DeviceServiceTest, TasksGoToTheDeviceWithLessWorkOrWhereTheirDataIs) {
  Start({0, 1});
  const auto blocker = SubmitBlocker(0);
  for (int i = 0; i < 3; ++i) {
    const auto free = Submit(Nothing);
    free->ended.WaitForNotification();
    EXPECT_EQ(free->device, 1);
  }
  const auto bound = Submit(Nothing, std::make_shared<CallState>(absl::InfiniteFuture()), 0);
  EXPECT_FALSE(bound->begun.HasBeenNotified());
  OpenGate();
  bound->ended.WaitForNotification();
  EXPECT_EQ(bound->device, 0);
}

TEST_F(DeviceServiceTest, SpreadsATenantsWorkBesideManyTasksOfAnother) {
  Start({0, 1});
  const std::vector<std::shared_ptr<Outcome>> blockers = {SubmitBlocker(0), SubmitBlocker(1)};
  std::vector<std::shared_ptr<Outcome>> tasks;
  for (int i = 0; i < 10; ++i) {
    tasks.push_back(Submit(Nothing, std::make_shared<CallState>(absl::InfiniteFuture()), 1,
                           {.tenant = 1, .cost = {.time = absl::Microseconds(20)}}));
  }
  for (int i = 0; i < 4; ++i) tasks.push_back(SubmitFor(2, absl::Milliseconds(10)));
  for (const int32_t id : {0, 1}) {
    EXPECT_EQ(device(id).queue().tenant_depths().OfSlot(2), 2u);
    EXPECT_EQ(device(id).queue().WorkOf(2), absl::Milliseconds(20));
  }
  OpenGate();
  for (const auto& task : tasks) task->ended.WaitForNotification();
  EXPECT_EQ(device(0).queue().WorkOf(2), absl::ZeroDuration());
  EXPECT_EQ(device(1).queue().WorkOf(2), absl::ZeroDuration());
}

TEST_F(DeviceServiceTest, CountsATenantsQueuedAndExecutingWork) {
  Start({0});
  const absl::Duration estimate = absl::Milliseconds(7);
  const auto running = SubmitBlocker(0, {.tenant = 3, .cost = {.time = estimate}});
  const DeviceQueue& queue = device(0).queue();
  EXPECT_EQ(queue.WorkOf(3), estimate);
  const auto call = std::make_shared<CallState>(absl::InfiniteFuture());
  const auto cancelled =
      Submit(Nothing, call, std::nullopt, {.tenant = 3, .cost = {.time = estimate}});
  const auto waiting = SubmitFor(3, estimate);
  EXPECT_EQ(queue.WorkOf(3), 3 * estimate);
  call->Cancel();
  EXPECT_EQ(queue.WorkOf(3), 2 * estimate);
  device(0).device().Quarantine(Fault::kDevice, "a test says so");
  waiting->ended.WaitForNotification();
  EXPECT_EQ(queue.WorkOf(3), estimate);
  OpenGate();
  running->ended.WaitForNotification();
  EXPECT_EQ(queue.WorkOf(3), absl::ZeroDuration());
}

TEST_F(DeviceServiceTest, AGoldenCaseThatCrashesCostsTheDevice) {
  InjectFaults("kernel=aclnnKlDivTargetBackward,code=507035,on=0,count=3");
  Start({0, 1});
  EXPECT_NE(device(0).device().state(), DeviceState::kStarting);
  EXPECT_EQ(device(1).device().state(), DeviceState::kReady);

  // Two more attempts fail, the fourth does not.
  AwaitState(0, DeviceState::kReady);

  EXPECT_EQ(device(0).device().quarantines().of(Fault::kSelfCheck), 1u);
  EXPECT_EQ(resets_, 3);
  // At the start and by two attempts to come back.
  EXPECT_EQ(device(0).device().errors().of(Fault::kSelfCheck), 3u);
}

TEST_F(DeviceServiceTest, AWrongGoldenResultCostsTheOperatorOnThatDevice) {
  InjectFaults("kernel=aclnnKlDivTargetBackward,wrong,on=0");
  Start({0, 1});
  EXPECT_EQ(device(0).device().state(), DeviceState::kReady);
  EXPECT_EQ(resets_, 0);
  EXPECT_EQ(device(0).device().errors().total(), 0u);

  for (int i = 0; i < 4; ++i) {
    const auto outcome = RunOperator("KlDivTargetBackward");
    EXPECT_TRUE(outcome->status.ok()) << outcome->status;
    EXPECT_EQ(outcome->device, 1);
  }
  // Other operators are not affected, and a task that can run nowhere else is told why.
  EXPECT_EQ(RunOperator("KlDivBackward", 0)->device, 0);
  const absl::Status refused = RunOperator("KlDivTargetBackward", 0)->status;
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(refused), "operator_unavailable");
  EXPECT_EQ(ErrorDetailOf(refused)->operator_(), "KlDivTargetBackward");
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("KlDivTargetBackward: device 0 does not offer it: golden case: "),
                    HasSubstr("must be"), HasSubstr("resident tensors are on this device")));

  const LoadedOperator& op = *operators_.Find("KlDivTargetBackward");
  EXPECT_TRUE(scheduler_->IsOffered(op));
  ASSERT_TRUE(Drain(1, absl::Now() + kLong).ok());
  EXPECT_FALSE(scheduler_->IsOffered(op));
  const absl::Status nowhere = RunOperator("KlDivTargetBackward")->status;
  EXPECT_EQ(ReasonOf(nowhere), "operator_unavailable");
  EXPECT_THAT(std::string(nowhere.message()), HasSubstr("no other ready device"));
  ASSERT_TRUE(Drain(0, absl::Now() + kLong).ok());
  EXPECT_EQ(ReasonOf(RunOperator("KlDivTargetBackward")->status), "device_unavailable");
}

TEST_F(DeviceServiceTest, ResumingAReadyDeviceTriesWrongOperatorsAgain) {
  InjectFaults("kernel=aclnnL1LossBackward,wrong,count=2");
  Start({0});
  const auto launches = [] { return HostCount(OPSERVE_HOST_LAUNCHES); };
  EXPECT_EQ(ReasonOf(RunOperator("L1LossBackward")->status), "operator_unavailable");

  const auto held = SubmitBlocker();  // what runs does not mind
  EXPECT_TRUE(device(0).Resume(absl::Now() + kLong).ok());
  EXPECT_EQ(ReasonOf(RunOperator("L1LossBackward")->status), "operator_unavailable");
  EXPECT_TRUE(device(0).Resume(absl::Now() + kLong).ok());
  const int64_t before = launches();
  EXPECT_TRUE(device(0).Resume(absl::Now() + kLong).ok());  // nothing is wrong any more
  EXPECT_EQ(launches(), before);

  OpenGate();
  EXPECT_TRUE(RunOperator("L1LossBackward")->status.ok());
  EXPECT_EQ(resets_, 0);
}

TEST_F(DeviceServiceTest, AnOperatorThatComesOutWrongIsNotRunForTasksThatWait) {
  Start({0, 1});
  const std::vector<std::shared_ptr<Outcome>> blockers = {SubmitBlocker(0), SubmitBlocker(1)};
  const LoadedOperator& op = *operators_.Find("L1LossBackward");
  const auto submit = [&](std::optional<int32_t> device) {
    return Submit(Nothing, std::make_shared<CallState>(absl::InfiniteFuture()), device, {}, &op);
  };
  std::vector<std::shared_ptr<Outcome>> free;
  for (int i = 0; i < 4; ++i) free.push_back(submit(std::nullopt));
  const auto bound = submit(0);

  op.offer->Set(0, {GoldenVerdict::kWrong, "golden case: a test says so"});
  OpenGate();

  for (const auto& outcome : free) {
    outcome->ended.WaitForNotification();
    EXPECT_TRUE(outcome->status.ok()) << outcome->status;
    EXPECT_EQ(outcome->device, 1);
  }
  bound->ended.WaitForNotification();
  EXPECT_EQ(ReasonOf(bound->status), "operator_unavailable");
}

TEST_F(DeviceServiceTest, ADeviceThatComputesNothingRightIsOfNoUse) {
  // No attempt of its own: it could be under way when the fault ends, and find half of them wrong.
  options_.first_recovery_wait = absl::Hours(1);
  options_.longest_recovery_wait = absl::Hours(1);
  InjectFaults("kernel=*,wrong,count=all");
  Start({0});
  EXPECT_EQ(device(0).device().state(), DeviceState::kQuarantined);
  EXPECT_EQ(device(0).device().quarantines().of(Fault::kSelfCheck), 1u);
  EXPECT_THAT(device(0).device().state_reason(), HasSubstr("computes no operator right"));
  ClearFaults();
  EXPECT_TRUE(device(0).Resume(absl::Now() + kLong).ok());
  EXPECT_TRUE(RunOperator("L1LossBackward")->status.ok());
}

// A golden case is a handful of elements, so that all of them take well under a second: each is
// launched once, and what they move is little.
TEST_F(DeviceServiceTest, ProvingItselfTakesOneLaunchForEachGoldenCase) {
  int64_t cases = 0;
  for (const LoadedOperator& op : operators_.operators()) {
    cases += static_cast<int64_t>(op.descriptor->golden.size());
  }
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  const auto calls = [](const char* name) { return static_cast<int64_t>(HostCalls(name)); };
  const int64_t waits = calls("aclrtSynchronizeStreamWithTimeout");
  const int64_t mallocs = calls("aclrtMalloc");

  Start({0});

  EXPECT_EQ(HostCount(OPSERVE_HOST_LAUNCHES) - launches, cases);
  EXPECT_LE(calls("aclrtSynchronizeStreamWithTimeout") - waits, cases + 8);
  EXPECT_LE(calls("aclrtMalloc") - mallocs, 4);
}

TEST_F(DeviceServiceTest, AFaultMovesWhatWaitsAndTheDeviceComesBack) {
  Start({0, 1});
  const auto other = SubmitBlocker(1);
  const auto on_zero = SubmitBlocker(0);
  std::vector<std::shared_ptr<Outcome>> waiting;
  for (int i = 0; i < 6; ++i) waiting.push_back(Submit(Nothing));
  auto call = std::make_shared<CallState>(absl::InfiniteFuture());
  const auto bound = Submit(Nothing, call, 0);

  device(0).device().Quarantine(Fault::kDevice, "a test says so");

  // What was queued on device 0 moves to the other one; what is bound to it cannot.
  bound->ended.WaitForNotification();
  EXPECT_EQ(ReasonOf(bound->status), "device_unavailable");
  EXPECT_EQ(ReasonOf(Submit(Nothing, call, 0)->status), "device_unavailable");
  OpenGate();
  for (const auto& outcome : waiting) {
    outcome->ended.WaitForNotification();
    EXPECT_TRUE(outcome->status.ok()) << outcome->status;
    EXPECT_EQ(outcome->device, 1);
  }
  AwaitState(0, DeviceState::kReady);
  EXPECT_EQ(resets_, 1);
  const auto after = Submit(Nothing, std::make_shared<CallState>(absl::InfiniteFuture()), 0);
  after->ended.WaitForNotification();
  EXPECT_TRUE(after->status.ok()) << after->status;
}

TEST_F(DeviceServiceTest, ALostDeviceIsResetAndServesAgain) {
  Start({0, 1});
  InjectFaults("device=0,lost,resets=3");

  const auto outcome = Submit(
      [](LaneContext& lane) {
        absl::Status status = lane.lane.Synchronize(kLong);
        return status;
      },
      std::make_shared<CallState>(absl::InfiniteFuture()), 0);

  outcome->ended.WaitForNotification();
  EXPECT_EQ(outcome->status.code(), absl::StatusCode::kUnavailable);
  AwaitState(0, DeviceState::kReady);
  EXPECT_GE(resets_, 3);
}

TEST_F(DeviceServiceTest, DrainingLosesNothing) {
  Start({0, 1});
  const auto first = SubmitBlocker(0);
  const auto second = SubmitBlocker(1);
  std::vector<std::shared_ptr<Outcome>> waiting;
  for (int i = 0; i < 4; ++i) waiting.push_back(Submit(Nothing));
  const auto bound = Submit(Nothing, std::make_shared<CallState>(absl::InfiniteFuture()), 0);

  const auto drained = Drain(0, absl::Now());

  EXPECT_EQ(drained.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(device(0).device().state(), DeviceState::kDraining);
  EXPECT_EQ(device(0).queued(), 1u);  // what cannot move
  const auto refused = Submit(Nothing, std::make_shared<CallState>(absl::InfiniteFuture()), 0);
  EXPECT_EQ(ReasonOf(refused->status), "draining");
  OpenGate();
  EXPECT_TRUE(Drain(0, absl::Now() + kLong).ok());
  for (const auto& outcome : waiting) {
    outcome->ended.WaitForNotification();
    EXPECT_TRUE(outcome->status.ok()) << outcome->status;
    EXPECT_EQ(outcome->device, 1);
  }
  bound->ended.WaitForNotification();
  EXPECT_TRUE(bound->status.ok()) << bound->status;
  EXPECT_EQ(resets_, 0);
}

TEST_F(DeviceServiceTest, ResumingPutsADrainedDeviceBackIfItIsRight) {
  Start({0});
  ASSERT_TRUE(Drain(0, absl::Now() + kLong).ok());
  EXPECT_TRUE(device(0).Resume(absl::Now() + kLong).ok());
  EXPECT_EQ(device(0).device().state(), DeviceState::kReady);

  ASSERT_TRUE(Drain(0, absl::Now() + kLong).ok());
  InjectFaults("kernel=*,code=507035");
  const absl::Status crash = device(0).Resume(absl::Now() + kLong);

  EXPECT_EQ(ErrorDetailOf(crash)->acl_error(), 507035);
  AwaitState(0, DeviceState::kReady);  // after the reset that follows
  EXPECT_EQ(resets_, 1);
}

TEST_F(DeviceServiceTest, ResumingDoesNotWaitForTheNextAttempt) {
  options_.first_recovery_wait = absl::Hours(1);
  options_.longest_recovery_wait = absl::Hours(1);
  InjectFaults("kernel=*,code=507035");
  Start({0});
  ASSERT_EQ(device(0).device().state(), DeviceState::kQuarantined);

  EXPECT_TRUE(device(0).Resume(absl::Now() + kLong).ok());

  EXPECT_EQ(device(0).device().state(), DeviceState::kReady);
}

TEST_F(DeviceServiceTest, EveryAbiCallOfBringingUpMayFail) {
  for (const char* function :
       {"aclrtSetDevice", "aclrtGetCurrentContext", "aclrtSetCurrentContext", "aclrtCreateStream",
        "aclrtMalloc", "aclrtMallocHost", "aclrtMemcpyAsync", "aclrtMemcpy", "aclCreateTensor",
        "aclrtSynchronizeStreamWithTimeout", "aclSetAclOpExecutorRepeatable",
        "aclSetInputTensorAddr", "aclSetOutputTensorAddr", "aclnnL1LossBackward",
        "aclnnL1LossBackwardGetWorkspaceSize", "aclrtMemsetAsync", "aclrtGetMemInfo"}) {
    for (int nth = 1; nth <= 3; ++nth) {
      SCOPED_TRACE(absl::StrCat(function, " ", nth));
      InjectFaults(absl::StrCat("call=", function, ",code=507000,nth=", nth));
      Start({0});
      AwaitState(0, DeviceState::kReady);
      auto outcome = Submit(Nothing);
      outcome->ended.WaitForNotification();
      if (!outcome->status.ok()) {  // the lane's own first call failed; the next attempt is well
        EXPECT_EQ(ReasonOf(outcome->status), "device_unavailable") << function << nth;
        AwaitState(0, DeviceState::kReady);
        outcome = Submit(Nothing);
        outcome->ended.WaitForNotification();
      }
      EXPECT_TRUE(outcome->status.ok()) << function << nth << outcome->status;
      scheduler_.reset();
      ClearFaults();
      EXPECT_EQ(HostCount(OPSERVE_HOST_EXECUTORS), 0) << function << nth;
      EXPECT_EQ(HostCount(OPSERVE_HOST_TENSORS), 0) << function << nth;
      EXPECT_EQ(HostCount(OPSERVE_HOST_STREAMS), 0) << function << nth;
      EXPECT_EQ(HostCount(OPSERVE_HOST_ALLOCATIONS), 0) << function << nth;
    }
  }
}

TEST_F(DeviceServiceTest, WhatWaitsIsKnownByTenant) {
  Start({0});
  const auto running = SubmitBlocker();
  const auto call = std::make_shared<CallState>(absl::InfiniteFuture());
  const auto cancelled = Submit(Nothing, call, std::nullopt, {.tenant = 1});
  std::vector<std::shared_ptr<Outcome>> waiting;
  for (const uint32_t tenant : {0, 1, 1, 199, 200, 4000}) waiting.push_back(SubmitFor(tenant));
  const DeviceQueue& queue = device(0).queue();
  const auto depths = [&] {
    std::vector<uint64_t> depths;
    for (const size_t slot : {size_t{0}, size_t{1}, size_t{2}, size_t{199}, kOtherTenants}) {
      depths.push_back(queue.tenant_depths().OfSlot(slot));
    }
    return depths;
  };
  EXPECT_EQ(depths(), (std::vector<uint64_t>{1, 3, 0, 1, 2}));

  call->Cancel();
  EXPECT_EQ(depths(), (std::vector<uint64_t>{1, 2, 0, 1, 2}));
  OpenGate();
  for (const auto& outcome : waiting) outcome->ended.WaitForNotification();
  EXPECT_EQ(depths(), (std::vector<uint64_t>{0, 0, 0, 0, 0}));
}

TEST_F(DeviceServiceTest, OnlyKnownTimeInTheQueueMakesADeadlineInfeasible) {
  Start({0});
  const auto running = SubmitBlocker();
  const CostModel::Estimate known = {.time = absl::Hours(1), .samples = kSamplesForRefusal};
  const CostModel::Estimate guessed = {.time = absl::Hours(1), .samples = kSamplesForRefusal - 1};
  const auto submit = [this](const CostModel::Estimate& cost, absl::Time deadline) {
    return Submit(Nothing, std::make_shared<CallState>(deadline), std::nullopt,
                  {.tenant = 1, .cost = cost});
  };
  const CostModel::Estimate small = {.time = absl::Milliseconds(1), .samples = 100};
  const absl::Time deadline = absl::Now() + absl::Minutes(30);

  const auto first = submit(guessed, absl::InfiniteFuture());
  const auto served = submit(small, deadline);
  EXPECT_FALSE(served->ended.HasBeenNotified());
  const auto second = submit(known, absl::InfiniteFuture());
  EXPECT_EQ(ReasonOf(submit(small, deadline)->status), "deadline_infeasible");

  OpenGate();
  for (const auto& outcome : {first, served, second}) {
    outcome->ended.WaitForNotification();
    EXPECT_TRUE(outcome->status.ok()) << outcome->status;
  }
}

TEST_F(DeviceServiceTest, ATaskThatWaitedForMemoryInVainSaysSo) {
  options_.queue_max_age = absl::Milliseconds(50);
  Start({0});
  AwaitState(0, DeviceState::kReady);
  DeviceQueue& queue = device(0).queue();
  const auto held = queue.TakeMemory(1, queue.RoomFor(1));
  ASSERT_TRUE(held.ok()) << held.status();

  const auto late = Submit(Nothing, std::make_shared<CallState>(absl::InfiniteFuture()),
                           std::nullopt, {.tenant = 1, .device_bytes = 1 << 20});
  late->ended.WaitForNotification();

  EXPECT_EQ(late->status.message(),
            "waited for a device longer than 50ms (queue_max_age): it needs 1048576 bytes of "
            "device memory, and 0 are free");
}

TEST_F(DeviceServiceTest, WhatIsRefusedOrMovedDoesNotWait) {
  options_.queue_capacity = 2;
  Start({0});
  const auto running = SubmitBlocker();
  const std::vector<std::shared_ptr<Outcome>> waiting = {SubmitFor(3), SubmitFor(4)};
  EXPECT_EQ(ReasonOf(SubmitFor(3)->status), "queue_full");
  const DeviceQueue& queue = device(0).queue();
  EXPECT_EQ(queue.tenant_depths().OfSlot(3), 1u);

  device(0).device().Quarantine(Fault::kDevice, "a test says so");

  for (const auto& outcome : waiting) outcome->ended.WaitForNotification();
  EXPECT_EQ(queue.tenant_depths().OfSlot(3), 0u);
  EXPECT_EQ(queue.tenant_depths().OfSlot(4), 0u);
  OpenGate();
}

TEST_F(DeviceServiceTest, LagsAreThoseOfTheLastSample) {
  options_.lanes = 2;
  Start({0});
  // Both were given lane time, the second more, and want more of it.
  const auto one = SubmitBlocker(0, {.tenant = 1, .cost = {.time = absl::Milliseconds(10)}});
  const auto two = SubmitBlocker(0, {.tenant = 250, .cost = {.time = absl::Milliseconds(50)}});
  const std::vector<std::shared_ptr<Outcome>> waiting = {SubmitFor(1), SubmitFor(250)};
  DeviceQueue& queue = device(0).queue();

  queue.SampleLags();

  const std::vector<uint32_t> tenants = {1, 250};
  const auto states = queue.TenantStates(tenants);
  EXPECT_EQ(states[0].lag, absl::Milliseconds(20));
  EXPECT_EQ(queue.LagOfSlot(1), states[0].lag);
  EXPECT_EQ(queue.LagOfSlot(kOtherTenants), states[1].lag);
  EXPECT_EQ(queue.LagOfSlot(2), absl::ZeroDuration());
  OpenGate();
  for (const auto& outcome : waiting) outcome->ended.WaitForNotification();
  queue.SampleLags();
  EXPECT_EQ(queue.LagOfSlot(1), absl::ZeroDuration());
  EXPECT_EQ(queue.LagOfSlot(kOtherTenants), absl::ZeroDuration());
}

TEST_F(DeviceServiceTest, ADeviceIsBusyWhileATaskRuns) {
  Start({0});
  const DeviceQueue& queue = device(0).queue();
  const auto grows = [&] {
    const absl::Time now = absl::Now();
    return queue.BusyTimeUntil(now + absl::Hours(1)) - queue.BusyTimeUntil(now);
  };
  EXPECT_EQ(grows(), absl::ZeroDuration());
  const auto running = SubmitBlocker();
  EXPECT_EQ(grows(), absl::Hours(1));
  OpenGate();
  running->ended.WaitForNotification();
  EXPECT_EQ(grows(), absl::ZeroDuration());
  EXPECT_GT(queue.BusyTimeUntil(absl::Now()), absl::ZeroDuration());
}

TEST_F(DeviceServiceTest, FaultsAreCountedByTheirKind) {
  Start({0});
  const Device& faulty = device(0).device();
  const auto run = [&] {
    const auto outcome = Submit([](LaneContext& lane) { return lane.lane.Synchronize(kLong); });
    outcome->ended.WaitForNotification();
    AwaitState(0, DeviceState::kReady);
  };
  InjectFaults("call=aclrtSynchronizeStreamWithTimeout,code=507015");  // a kernel
  run();
  EXPECT_EQ(faulty.errors().of(Fault::kKernel), 1u);
  EXPECT_EQ(faulty.quarantines().total(), 0u);
  InjectFaults("call=aclrtSynchronizeStreamWithTimeout,code=507010");  // a lost device
  run();
  EXPECT_EQ(faulty.errors().of(Fault::kDevice), 1u);
  EXPECT_EQ(faulty.quarantines().of(Fault::kDevice), 1u);
  InjectFaults("call=aclrtSynchronizeStreamWithTimeout,code=507054");  // damaged memory
  run();
  EXPECT_EQ(faulty.errors().of(Fault::kMemory), 1u);
  EXPECT_EQ(faulty.quarantines().of(Fault::kMemory), 1u);
  EXPECT_EQ(faulty.errors().total(), 3u);
  EXPECT_EQ(faulty.quarantines().total(), 2u);
}

TEST(DeviceHealthTest, FaultsOfADeviceThatIsOutAreNotCounted) {
  DeviceHealth health(0);
  ASSERT_TRUE(health.Transition(DeviceState::kStarting, DeviceState::kReady));
  health.NoteTaskFault(Fault::kKernel, "a kernel");
  health.NoteLostStream("a stream");
  EXPECT_EQ(health.errors().total(), 2u);
  health.Quarantine(Fault::kDevice, "lost");
  EXPECT_EQ(health.errors().total(), 3u);
  health.NoteTaskFault(Fault::kKernel, "a kernel");
  health.NoteLostStream("a stream");
  health.Quarantine(Fault::kDevice, "lost");
  EXPECT_EQ(health.errors().total(), 3u);
  EXPECT_EQ(health.lost_streams(), 2u);
}

TEST_F(DeviceServiceTest, TheBackOffDoubles) {
  options_.first_recovery_wait = absl::Milliseconds(1);
  options_.longest_recovery_wait = absl::Milliseconds(64);
  InjectFaults("kernel=*,code=507035,count=6");
  const absl::Time start = absl::Now();
  Start({0});

  AwaitState(0, DeviceState::kReady);

  // The first attempt and five more fail; the waits before them are 1, 2, 4, 8, 16 and 32 ms.
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(63));
  EXPECT_EQ(resets_, 6);
}

TEST_F(DeviceServiceTest, ADeviceWhoseLanesAreAllHeldLeavesServiceUntilTheyAreFree) {
  options_.lanes = 2;
  options_.execution_timeout = kHeldTooLong;
  options_.hold_grace = absl::Milliseconds(10);
  options_.park_timeout = kLong;
  Start({0});
  const auto first = SubmitBlocker();
  const auto second = SubmitBlocker();
  AwaitState(0, DeviceState::kQuarantined);
  EXPECT_EQ(device(0).device().state_reason(),
            "all 2 lanes are held beyond the execution timeout of 1s");
  EXPECT_EQ(device(0).device().quarantines().of(Fault::kTimeout), 1u);
  EXPECT_FALSE(scheduler_->HasReadyDevice());
  EXPECT_EQ(Submit(Nothing)->status.code(), absl::StatusCode::kUnavailable);

  OpenGate();
  AwaitState(0, DeviceState::kReady);
  EXPECT_EQ(resets_, 1);
  const auto after = Submit(Nothing);
  after->ended.WaitForNotification();
  EXPECT_TRUE(after->status.ok()) << after->status;
}

TEST_F(DeviceServiceTest, AFailedDeviceComesBackWhenItsLanesAreFree) {
  options_.execution_timeout = kHeldTooLong;
  options_.hold_grace = absl::ZeroDuration();
  options_.park_timeout = absl::Milliseconds(1);
  Start({0});
  const auto held = SubmitBlocker();
  AwaitState(0, DeviceState::kFailed);
  EXPECT_THAT(device(0).device().state_reason(),
              ::testing::HasSubstr("all 1 lanes are held beyond the execution timeout"));
  OpenGate();
  AwaitState(0, DeviceState::kReady);
  held->ended.WaitForNotification();
}

}  // namespace
}  // namespace opserve::server
