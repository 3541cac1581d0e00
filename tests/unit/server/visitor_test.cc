#include "server/schedule/lanes/visitor.h"

#include <thread>

#include "tests/unit/server/device_service_fixture.h"

namespace opserve::server {
namespace {

// Of a task in two steps: which thread took each, and what it finds.
struct Steps {
  bool can_start = true;
  std::atomic<bool> is_over = true;
  std::thread::id started_by;   // the first half on a visitor's lane
  std::thread::id finished_by;  // the second half there
  std::thread::id run_by;       // both on the lane of a thread
  int32_t lane = -1;
};

class PromptTask final : public LaneTask {
 public:
  PromptTask(std::shared_ptr<CallState> call, Steps& steps, std::shared_ptr<Outcome> outcome)
      : LaneTask(std::move(call), std::nullopt, {}), steps_(steps), outcome_(std::move(outcome)) {}

  bool is_prompt() const override { return true; }
  bool Queue(LaneContext& lane) override {
    (lane.may_wait ? steps_.run_by : steps_.started_by) = std::this_thread::get_id();
    steps_.lane = static_cast<int32_t>(lane.lane.index());
    EXPECT_FALSE(lane.staging.empty());
    lane_ = &lane;
    return lane.may_wait || steps_.can_start;
  }
  bool IsOver() const override { return steps_.is_over; }
  void Finish() override {
    if (lane_->may_wait) return;  // a lane's thread took both halves
    steps_.finished_by = std::this_thread::get_id();
    outcome_->begun.Notify();
    if (!steps_.is_over) status_ = lane_->lane.Synchronize(lane_->execution_timeout);
  }
  void Answer() override { End(status_); }
  void Refuse(const absl::Status& status) override { End(status); }

 private:
  void End(const absl::Status& status) {
    outcome_->status = status;
    outcome_->ended.Notify();
  }

  Steps& steps_;
  const std::shared_ptr<Outcome> outcome_;
  LaneContext* lane_ = nullptr;
  absl::Status status_;
};

class VisitorTest : public DeviceServiceTest {
 protected:
  void SetUp() override {
    DeviceServiceTest::SetUp();
    options_.visitors = 1;
  }

  std::shared_ptr<Outcome> SubmitPrompt(
      Steps& steps,
      std::shared_ptr<CallState> call = std::make_shared<CallState>(absl::InfiniteFuture())) {
    auto outcome = std::make_shared<Outcome>();
    std::unique_ptr<LaneTask> task = std::make_unique<PromptTask>(std::move(call), steps, outcome);
    EXPECT_TRUE(scheduler_->Submit(&task).ok());
    return outcome;
  }
};

TEST_F(VisitorTest, APromptTaskIsOverWhenSubmitReturns) {
  Start({0});
  const Visitor visitor(0);
  for (int i = 0; i < 3; ++i) {
    Steps steps;
    const auto outcome = SubmitPrompt(steps);

    ASSERT_TRUE(outcome->ended.HasBeenNotified());
    EXPECT_TRUE(outcome->status.ok());
    EXPECT_EQ(steps.started_by, std::this_thread::get_id());
    EXPECT_EQ(steps.finished_by, std::this_thread::get_id());
    EXPECT_EQ(steps.lane, 1) << "behind those with a thread";
  }
  EXPECT_EQ(device(0).completed(), 3u);
  EXPECT_EQ(device(0).executing(), 0u);
}

TEST_F(VisitorTest, OthersLeaveItToALane) {
  Start({0});
  {
    Steps steps;  // this thread is no visitor
    SubmitPrompt(steps)->ended.WaitForNotification();
    EXPECT_NE(steps.run_by, std::this_thread::get_id());
    EXPECT_EQ(steps.lane, 0);
  }
  const Visitor visitor(1);  // there are lanes for one
  Steps steps;
  SubmitPrompt(steps)->ended.WaitForNotification();
  EXPECT_EQ(steps.lane, 0);
  EXPECT_EQ(steps.started_by, std::thread::id());
}

TEST_F(VisitorTest, WhatCannotStartAtOnceRunsOnALane) {
  Start({0});
  const Visitor visitor(0);
  Steps steps;
  steps.can_start = false;
  const auto outcome = SubmitPrompt(steps);
  outcome->ended.WaitForNotification();

  EXPECT_TRUE(outcome->status.ok());
  EXPECT_EQ(steps.started_by, std::this_thread::get_id());
  EXPECT_EQ(steps.finished_by, std::thread::id());
  EXPECT_NE(steps.run_by, std::this_thread::get_id());
  EXPECT_EQ(steps.lane, 0);
}

TEST_F(VisitorTest, WhatIsNotOverIsFinishedByALaneWhileTheVisitorGoesOn) {
  Start({0});
  const auto blocker = SubmitBlocker();  // so that nobody finishes it
  const Visitor visitor(0);
  Steps first;
  first.is_over = false;
  const auto handed_over = SubmitPrompt(first);
  EXPECT_FALSE(handed_over->ended.HasBeenNotified());

  // Its lane is in use until then, so the next one waits for the other lane.
  Steps second;
  const auto queued = SubmitPrompt(second);
  EXPECT_FALSE(queued->ended.HasBeenNotified());
  EXPECT_EQ(second.started_by, std::thread::id());

  OpenGate();
  handed_over->ended.WaitForNotification();
  queued->ended.WaitForNotification();
  EXPECT_TRUE(handed_over->status.ok()) << handed_over->status;
  EXPECT_NE(first.finished_by, std::this_thread::get_id());
  EXPECT_EQ(second.lane, 0);
}

TEST_F(VisitorTest, NothingIsOvertaken) {
  Start({0});
  const auto blocker = SubmitBlocker();
  const auto waiting = Submit(Nothing);
  const Visitor visitor(0);
  Steps steps;
  const auto outcome = SubmitPrompt(steps);

  EXPECT_FALSE(outcome->ended.HasBeenNotified());
  EXPECT_EQ(device(0).queued(), 2u);
  OpenGate();
  outcome->ended.WaitForNotification();
  EXPECT_TRUE(waiting->ended.HasBeenNotified());
}

TEST_F(VisitorTest, ACancelledTaskThatWasHandedOverIsAborted) {
  Start({0});
  const auto blocker = SubmitBlocker();
  const Visitor visitor(0);
  Steps steps;
  steps.is_over = false;
  auto call = std::make_shared<CallState>(absl::InfiniteFuture());
  const auto outcome = SubmitPrompt(steps, call);
  call->Cancel();  // nobody works on it now

  OpenGate();
  outcome->ended.WaitForNotification();
  EXPECT_EQ(outcome->status.code(), absl::StatusCode::kCancelled);

  Steps next;
  next.is_over = true;
  EXPECT_TRUE(SubmitPrompt(next)->ended.HasBeenNotified()) << "the lane serves again";
}

TEST_F(VisitorTest, ADrainWaitsForWhatWasHandedOver) {
  Start({0});
  const auto blocker = SubmitBlocker();
  const Visitor visitor(0);
  Steps steps;
  steps.is_over = false;
  const auto outcome = SubmitPrompt(steps);
  std::thread opener([this] { OpenGate(); });

  const auto moved = Drain(0, absl::Now() + kLong);

  EXPECT_EQ(moved.value_or(99), 0u) << moved.status();
  EXPECT_TRUE(outcome->ended.HasBeenNotified() || device(0).executing() == 0);
  opener.join();
  outcome->ended.WaitForNotification();
}

TEST_F(VisitorTest, ABrokenDeviceIsResetAfterWhatWasHandedOver) {
  Start({0});
  const auto blocker = SubmitBlocker();
  const Visitor visitor(0);
  Steps steps;
  steps.is_over = false;
  const auto outcome = SubmitPrompt(steps);

  device(0).device().Quarantine(Fault::kDevice, "a test says so");
  OpenGate();
  outcome->ended.WaitForNotification();
  AwaitState(0, DeviceState::kReady);
  EXPECT_EQ(resets_, 1);

  Steps next;
  EXPECT_TRUE(SubmitPrompt(next)->ended.HasBeenNotified());
  EXPECT_EQ(next.started_by, std::this_thread::get_id());
}

}  // namespace
}  // namespace opserve::server
