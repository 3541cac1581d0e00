// Devices in service, and tasks that do what a test says.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/unit/server/acl_environment.h"

namespace opserve::server {

inline constexpr absl::Duration kLong = absl::Seconds(60);

// How a task ended, to be waited for.
struct Outcome {
  absl::Notification begun;
  absl::Notification ended;
  absl::Status status;  // after `ended`
  int32_t device = -1;  // where it ran
};

// Does what the test says on a lane.
class TestTask final : public LaneTask {
 public:
  TestTask(std::shared_ptr<CallState> call, std::optional<int32_t> device,
           std::shared_ptr<Outcome> outcome, std::function<absl::Status(LaneContext&)> work,
           const TaskDemand& demand, const LoadedOperator* op)
      : LaneTask(std::move(call), device, demand),
        outcome_(std::move(outcome)),
        work_(std::move(work)),
        op_(op) {}

  const LoadedOperator* MissingOn(int32_t device) const override {
    return op_ == nullptr || op_->offer->IsOfferedBy(device) ? nullptr : op_;
  }

  bool Queue(LaneContext& lane) override {
    outcome_->device = lane.lane.device().id();
    outcome_->begun.Notify();
    status_ = work_(lane);
    return true;
  }
  bool IsOver() const override { return true; }
  void Finish() override {}
  void Answer() override { End(status_); }
  void Refuse(const absl::Status& status) override { End(status); }

 private:
  void End(const absl::Status& status) {
    outcome_->status = status;
    outcome_->ended.Notify();
  }

  const std::shared_ptr<Outcome> outcome_;
  const std::function<absl::Status(LaneContext&)> work_;
  const LoadedOperator* const op_;
  absl::Status status_;
};

class DeviceServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.lanes = 1;
    options_.execution_timeout = kLong;
    options_.first_recovery_wait = absl::Milliseconds(1);
    options_.longest_recovery_wait = absl::Milliseconds(4);
  }
  void TearDown() override {
    scheduler_.reset();
    ClearFaults();
    pinned_->Close();
  }

  void Start(const std::vector<int32_t>& devices) {
    scheduler_ = std::make_unique<Scheduler>(
        TestAcl(), devices, operators_, pinned_, options_,
        Scheduler::Hooks{.device_was_reset = [this](int32_t, uint64_t) { ++resets_; },
                         .state_changed =
                             [this] {
                               absl::MutexLock lock(&mutex_);
                               ++state_changes_;
                             }});
  }

  DeviceService& device(int32_t id) { return *scheduler_->Find(id); }
  // Takes the device out of service and waits until it is empty; how many requests have moved.
  absl::StatusOr<uint32_t> Drain(int number, absl::Time deadline) {
    absl::StatusOr<uint32_t> moved = device(number).BeginDrain();
    if (!moved.ok()) return moved;
    if (absl::Status status = device(number).AwaitDrained(deadline); !status.ok()) return status;
    return moved;
  }

  // Submits a task that does `work`, with the operator `op` if it is not null. A refusal is its
  // end.
  std::shared_ptr<Outcome> Submit(
      std::function<absl::Status(LaneContext&)> work,
      std::shared_ptr<CallState> call = std::make_shared<CallState>(absl::InfiniteFuture()),
      std::optional<int32_t> device = std::nullopt, const TaskDemand& demand = {},
      const LoadedOperator* op = nullptr) {
    auto outcome = std::make_shared<Outcome>();
    std::unique_ptr<LaneTask> task =
        std::make_unique<TestTask>(std::move(call), device, outcome, std::move(work), demand, op);
    const absl::Status status = scheduler_->Submit(&task);
    if (!status.ok()) {
      outcome->status = status;
      outcome->ended.Notify();
    }
    return outcome;
  }

  // Submits one with the operator, and waits for its end.
  std::shared_ptr<Outcome> RunOperator(const char* name,
                                       std::optional<int32_t> device = std::nullopt) {
    auto outcome = Submit(Nothing, std::make_shared<CallState>(absl::InfiniteFuture()), device, {},
                          operators_.Find(name));
    outcome->ended.WaitForNotification();
    return outcome;
  }

  // Submits one of a tenant, which will probably take this long.
  std::shared_ptr<Outcome> SubmitFor(uint32_t tenant, absl::Duration estimate = {}) {
    return Submit(Nothing, std::make_shared<CallState>(absl::InfiniteFuture()), std::nullopt,
                  {.tenant = tenant, .cost = {.time = estimate}});
  }

  // Submits one that holds its lane until OpenGate.
  std::shared_ptr<Outcome> SubmitBlocker(std::optional<int32_t> device = std::nullopt,
                                         const TaskDemand& demand = {}) {
    auto outcome = Submit(
        [this](LaneContext&) {
          open_.WaitForNotification();
          return absl::OkStatus();
        },
        std::make_shared<CallState>(absl::InfiniteFuture()), device, demand);
    // One that was refused never begins.
    EXPECT_TRUE(outcome->begun.WaitForNotificationWithTimeout(kLong)) << "it was refused, or waits";
    return outcome;
  }
  void OpenGate() { open_.Notify(); }

  void AwaitState(int32_t id, DeviceState state) {
    absl::MutexLock lock(&mutex_);
    const auto has_state = [&] { return device(id).device().state() == state; };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&has_state), kLong))
        << id << " is " << DeviceStateName(device(id).device().state());
  }

  static absl::Status Nothing(LaneContext&) { return absl::OkStatus(); }

  absl::Mutex mutex_;
  int state_changes_ = 0;
  std::atomic<int> resets_ = 0;
  const OperatorTable operators_{TestAcl()};
  const std::shared_ptr<PinnedPool> pinned_ = PinnedPool::Create(TestAcl(), 32 << 20, false);
  DeviceServiceOptions options_;
  absl::Notification open_;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace opserve::server
