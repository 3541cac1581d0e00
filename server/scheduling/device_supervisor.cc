// The supervisor's thread of a DeviceService, and what Supervision has it do.
#include <algorithm>
#include <deque>
#include <utility>

#include "absl/time/clock.h"
#include "proto/status/status_macros.h"
#include "server/execution/golden_values.h"
#include "server/scheduling/device_service.h"

namespace opserve::server {
namespace {

// More than the largest golden result.
constexpr size_t kProbePinnedBytes = 1 << 20;

}  // namespace

void DeviceService::Supervise() {
  supervision_.Begin();
  first_attempt_.Notify();
  while (true) {
    std::deque<Command> commands = AwaitCommands(supervision_.NextLook());
    {
      absl::MutexLock lock(&mutex_);
      if (is_closing_) break;
    }
    for (const Command& command : commands) command();
    supervision_.Look();
  }
}

std::deque<DeviceService::Command> DeviceService::AwaitCommands(absl::Time until) {
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithDeadline(absl::Condition(this, &DeviceService::HasWork), until);
  is_awake_ = false;
  return std::exchange(commands_, {});
}

absl::Time DeviceService::Now() const { return absl::Now(); }

absl::Status DeviceService::Open() { return device_.Open(); }

absl::Status DeviceService::Reset() {
  const absl::Status status = device_.Reset();
  hooks_.was_reset(device_.id(), device_.generation());
  return status;
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

bool DeviceService::HasWrongOperators() const {
  const absl::Span<const LoadedOperator> all = operators_.operators();
  return std::any_of(all.begin(), all.end(), [this](const LoadedOperator& op) {
    return op.offer->IsWrongOn(device_.id());
  });
}

absl::Status DeviceService::StartLanes() {
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

absl::Time DeviceService::AllLanesHeldSince() const { return lanes_->AllHeldSince(); }

void DeviceService::StopWork() {
  for (std::unique_ptr<LaneTask>& task : queue_.Pause()) MoveOrRefuse(std::move(task));
  device_.StopWork();
}

bool DeviceService::AwaitLanesEnd(absl::Duration timeout) { return lanes_->AwaitEnd(timeout); }

void DeviceService::DropLanes() { lanes_.reset(); }

void DeviceService::KeepHouse() {
  const absl::Time now = absl::Now();
  device_.SampleMemory();
  device_.memory().TrimDecayed(now);
  // Lanes look for them only between tasks.
  for (std::unique_ptr<LaneTask>& task : queue_.TakeExpired(now)) OnExpired(std::move(task));
  queue_.SampleLags();
}

void DeviceService::SampleMemory() { device_.SampleMemory(); }

void DeviceService::SampleLoad() {
  const absl::Time now = absl::Now();
  utilization_.Sample(queue_.BusyTimeUntil(now), now);
}

}  // namespace opserve::server
