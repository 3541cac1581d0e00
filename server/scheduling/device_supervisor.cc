// The supervisor of a DeviceService: brings the device up, keeps house, and sees to faults.
#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/status/status_macros.h"
#include "server/execution/golden_values.h"
#include "server/observability/log.h"
#include "server/scheduling/device_service.h"

namespace opserve::server {
namespace {

// Period at which the supervisor samples the device's memory and the tenants' lags, gives idle
// memory of the pool back, and refuses expired tasks.
constexpr absl::Duration kHousekeepingPeriod = absl::Seconds(1);
// More than the largest golden result.
constexpr size_t kProbePinnedBytes = 1 << 20;

}  // namespace

void DeviceService::Supervise() {
  OpenDevice();
  first_attempt_.Notify();
  absl::Time housekeeping = absl::Now() + kHousekeepingPeriod;
  while (true) {
    const bool is_broken = device_.state() == DeviceState::kQuarantined;
    std::deque<Command> commands =
        AwaitCommands(is_broken ? std::min(next_attempt_, housekeeping) : housekeeping);
    {
      absl::MutexLock lock(&mutex_);
      if (is_closing_) break;
    }
    for (const Command& command : commands) command();
    if (device_.state() == DeviceState::kQuarantined) AttendToQuarantine();
    if (absl::Now() < housekeeping) continue;
    if (device_.state() != DeviceState::kQuarantined && lanes_ != nullptr) {
      KeepHouse();
      CheckLanes();
    }
    utilization_.Sample(queue_.BusyTimeUntil(absl::Now()), absl::Now());
    housekeeping = absl::Now() + kHousekeepingPeriod;
  }
}

void DeviceService::KeepHouse() {
  device_.SampleMemory();
  device_.memory().TrimDecayed(absl::Now());
  // Lanes look for them only between tasks.
  for (std::unique_ptr<LaneTask>& task : queue_.TakeExpired()) OnExpired(std::move(task));
  queue_.SampleLags();
}

void DeviceService::CheckLanes() {
  if (device_.state() == DeviceState::kFailed) {
    // The calls that kept it from being reset may return after all.
    if (lanes_->AwaitEnd(absl::ZeroDuration())) {
      device_.Transition(DeviceState::kFailed, DeviceState::kQuarantined,
                         "the calls on the device have returned; it is reset");
    }
    return;
  }
  const absl::Duration held = absl::Now() - lanes_->AllHeldSince();
  if (held <= options_.execution_timeout + options_.hold_grace) return;
  device_.Quarantine(
      Fault::kTimeout,
      absl::StrCat("all ", options_.lanes, " lanes are held beyond the execution timeout of ",
                   absl::FormatDuration(options_.execution_timeout)));
}

std::deque<DeviceService::Command> DeviceService::AwaitCommands(absl::Time until) {
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithDeadline(absl::Condition(this, &DeviceService::HasWork), until);
  is_awake_ = false;
  return std::exchange(commands_, {});
}

void DeviceService::OpenDevice() {
  Fault fault = Fault::kSetUp;
  absl::Status status = device_.Open();
  if (status.ok()) status = BringUp(&fault);
  if (status.ok()) {
    device_.Transition(DeviceState::kStarting, DeviceState::kReady);
    return;
  }
  device_.Quarantine(fault, status.message());
  PutOff(absl::Now());
}

absl::Status DeviceService::ProveItself(Fault* fault) {
  *fault = Fault::kSetUp;
  OPSERVE_ASSIGN_OR_RETURN(std::unique_ptr<StreamLane> probe,
                           StreamLane::Create(device_, options_.lanes + options_.visitors));
  PlanCache plans(device_.acl(), /*capacity=*/1, probe_counters_);
  // A pool of its own: results that clients do not fetch must not keep a device from returning.
  const auto pinned = PinnedPool::Create(device_.acl(), kProbePinnedBytes);
  LaneContext context{*probe, plans, *pinned, workspace_limits_, options_.execution_timeout};
  const absl::Status status = CheckGoldenValues(operators_, context);
  pinned->Close();
  if (!status.ok()) *fault = Fault::kSelfCheck;
  return status;
}

absl::Status DeviceService::BringUp(Fault* fault) {
  OPSERVE_RETURN_IF_ERROR(ProveItself(fault));
  *fault = Fault::kSetUp;
  up_since_ = absl::Now();
  if (lanes_ != nullptr) return absl::OkStatus();
  // Open first: a lane's thread ends when it finds the queue paused. Nothing comes before the
  // device is ready.
  queue_.Open();
  auto lanes = LaneGroup::Start(
      {.device = device_,
       .queue = queue_,
       .pinned = *pinned_,
       .plan_counters = plan_counters_,
       .events = *this,
       .workspace_limits = workspace_limits_,
       .execution_timeout = options_.execution_timeout},
      {.lanes = options_.lanes,
       .visitors = options_.visitors,
       .plans_per_lane = std::max<size_t>(options_.plan_cache_entries / options_.lanes, 1)});
  if (!lanes.ok()) {
    queue_.Pause();
    return lanes.status();
  }
  lanes_ = *std::move(lanes);
  queue_.AllowVisits(lanes_.get(), options_.visitors);
  return absl::OkStatus();
}

void DeviceService::AttendToQuarantine() {
  if (lanes_ != nullptr) {
    for (std::unique_ptr<LaneTask>& task : queue_.Pause()) MoveOrRefuse(std::move(task));
    device_.StopWork();
    if (!lanes_->AwaitEnd(options_.execution_timeout + options_.park_timeout)) {
      // A thread that does not come back from a call on the device: resetting it now would pull the
      // memory away under that call.
      device_.Transition(DeviceState::kQuarantined, DeviceState::kFailed,
                         absl::StrCat("a call on the device does not return; if it never does, "
                                      "restart the daemon; before that: ",
                                      device_.state_reason()));
      return;
    }
    lanes_.reset();
    const absl::Time now = absl::Now();
    if (now - up_since_ >= 2 * recovery_wait_) {
      recovery_wait_ = options_.first_recovery_wait;
      next_attempt_ = now;
    } else {
      PutOff(now);
    }
  }
  if (absl::Now() < next_attempt_) return;
  if (absl::Status status = Recover(); !status.ok()) {
    LogWarning("device_recovery_failed",
               {{"device", device_.id()},
                {"error", std::string(status.message())},
                {"next_attempt_seconds", absl::ToDoubleSeconds(recovery_wait_)}});
    PutOff(absl::Now());
  }
}

void DeviceService::PutOff(absl::Time now) {
  next_attempt_ = now + recovery_wait_;
  recovery_wait_ = std::min(2 * recovery_wait_, options_.longest_recovery_wait);
}

absl::Status DeviceService::Recover() {
  Fault fault = Fault::kSetUp;
  absl::Status status = device_.Reset();
  hooks_.was_reset(device_.id(), device_.generation());
  if (status.ok()) status = BringUp(&fault);
  if (!status.ok()) {
    device_.NoteFailedRecovery(fault, status);
    return status;
  }
  device_.SampleMemory();
  device_.Transition(DeviceState::kQuarantined, DeviceState::kReady);
  return absl::OkStatus();
}

absl::Status DeviceService::TryOperatorsAgain() {
  const absl::Span<const LoadedOperator> all = operators_.operators();
  if (std::none_of(all.begin(), all.end(), [this](const LoadedOperator& op) {
        return op.offer->IsWrongOn(device_.id());
      })) {
    return absl::OkStatus();
  }
  Fault fault = Fault::kSetUp;
  const absl::Status status = ProveItself(&fault);
  // Requests may have all the memory there is, which is no fault of the device.
  if (status.ok() || absl::IsResourceExhausted(status)) return status;
  device_.Quarantine(fault, status.message());
  return status;
}

absl::Status DeviceService::ResumeNow() {
  Fault fault = Fault::kSetUp;
  switch (device_.state()) {
    case DeviceState::kReady:
      return TryOperatorsAgain();
    case DeviceState::kDraining:
      if (absl::Status status = BringUp(&fault); !status.ok()) {
        device_.Quarantine(fault, status.message());
        return status;
      }
      device_.Transition(DeviceState::kDraining, DeviceState::kReady);
      return absl::OkStatus();
    case DeviceState::kQuarantined:
      next_attempt_ = absl::InfinitePast();
      if (lanes_ != nullptr) AttendToQuarantine();
      if (device_.state() == DeviceState::kReady) return absl::OkStatus();
      return Recover();
    case DeviceState::kStarting:
    case DeviceState::kFailed:
      break;
  }
  return absl::FailedPreconditionError(absl::StrCat("device ", device_.id(), " is ",
                                                    DeviceStateName(device_.state()), ": ",
                                                    device_.state_reason()));
}

}  // namespace opserve::server
