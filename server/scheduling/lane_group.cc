#include "server/scheduling/lane_group.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "proto/status/status_macros.h"

namespace opserve::server {
namespace {

// For the payloads of a prompt task and what lies between them.
constexpr size_t kStagingBytes = 80 << 10;

bool IsUp(const Device& device) {
  const DeviceState state = device.state();
  return state == DeviceState::kReady || state == DeviceState::kDraining;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LaneGroup>> LaneGroup::Start(const Parts& parts, const Size& size) {
  auto group = std::unique_ptr<LaneGroup>(new LaneGroup(parts));
  const auto make = [&](uint32_t index, auto& lane) -> absl::Status {
    OPSERVE_ASSIGN_OR_RETURN(lane.stream, StreamLane::Create(parts.device, index));
    lane.plans =
        std::make_unique<PlanCache>(parts.device.acl(), size.plans_per_lane, parts.plan_counters);
    return absl::OkStatus();
  };
  for (uint32_t i = 0; i < size.lanes; ++i) {
    group->lanes_.push_back(std::make_unique<Lane>());
    OPSERVE_RETURN_IF_ERROR(make(i, *group->lanes_.back()));
  }
  // Not of the pool for results, which is booked to the last byte.
  group->staging_ = PinnedPool::Create(parts.device.acl(), size.visitors * kStagingBytes);
  for (uint32_t i = 0; i < size.visitors; ++i) {
    VisitorLane& visitor = *group->visitors_.emplace_back(std::make_unique<VisitorLane>());
    OPSERVE_RETURN_IF_ERROR(make(size.lanes + i, visitor));
    OPSERVE_ASSIGN_OR_RETURN(visitor.staging, group->staging_->Allocate(kStagingBytes));
  }
  {
    absl::MutexLock lock(&group->mutex_);
    group->running_ = size.lanes;
  }
  for (const std::unique_ptr<Lane>& lane : group->lanes_) {
    lane->thread = std::thread([group = group.get(), &lane] { group->Serve(*lane); });
  }
  return group;
}

LaneGroup::~LaneGroup() {
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    if (lane->thread.joinable()) lane->thread.join();
    lane->plans.reset();
  }
  visitors_.clear();
  if (staging_ != nullptr) staging_->Close();
}

void LaneGroup::AbortTask(uint32_t lane, uint64_t task) {
  StreamLane& stream =
      lane < lanes_.size() ? *lanes_[lane]->stream : *visitors_[lane - lanes_.size()]->stream;
  stream.AbortTask(task);
}

absl::Time LaneGroup::AllHeldSince() const {
  absl::Time last = absl::InfinitePast();
  for (const std::unique_ptr<Lane>& lane : lanes_) last = std::max(last, lane->hold.since());
  return last;
}

bool LaneGroup::AwaitEnd(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(this, &LaneGroup::HaveAllEnded), timeout);
}

void LaneGroup::Serve(Lane& lane) {
  bool is_bound = false;
  while (true) {
    DeviceQueue::Popped popped = parts_.queue.Pop();
    for (std::unique_ptr<LaneTask>& task : popped.expired) parts_.events.OnExpired(std::move(task));
    if (popped.is_over) break;
    if (!popped.next && !popped.visit) continue;
    if (!is_bound) {
      absl::Status status = parts_.device.BindThisThread();
      if (!status.ok()) parts_.device.Quarantine(Fault::kSetUp, status.message());
      is_bound = status.ok();
    }
    if (popped.visit) {
      TakeOver(*popped.visit, lane, is_bound);
    } else {
      RunOrGiveBack(lane, *std::move(popped.next), is_bound);
    }
  }
  absl::MutexLock lock(&mutex_);
  --running_;
}

void LaneGroup::RunOrGiveBack(Lane& lane, DeviceQueue::Dispatched dispatched, bool is_bound) {
  if (is_bound && IsUp(parts_.device)) {
    RunTask(lane, std::move(dispatched));
  } else {
    parts_.queue.TaskEnded(dispatched.lease, absl::ZeroDuration());
    parts_.events.OnGivenBack(std::move(dispatched.task));
  }
}

void LaneGroup::RunVisit(uint32_t visitor, DeviceQueue::Dispatched dispatched) {
  VisitorLane& lane = *visitors_[visitor];
  lane.dispatched = std::move(dispatched);
  lane.start = absl::Now();
  const bool is_started = StartVisit(lane);
  if (!is_started) lane.context.reset();
  if (is_started && lane.dispatched->task->IsOver()) {
    FinishVisit(visitor);
  } else {
    parts_.queue.HandOver(visitor);
  }
}

bool LaneGroup::StartVisit(VisitorLane& lane) {
  // The thread may have been to another device in between.
  if (!IsUp(parts_.device) || !parts_.device.BindThisThread().ok()) return false;
  lane.task = lane.stream->BeginTask();
  lane.context.emplace(
      LaneContext{*lane.stream, *lane.plans, parts_.pinned, parts_.workspace_limits,
                  parts_.execution_timeout, lane.dispatched->pinned,
                  absl::MakeSpan(static_cast<char*>(lane.staging.data()), lane.staging.size())});
  return lane.dispatched->task->Start(*lane.context);
}

// Where the visitor's own thread left off.
void LaneGroup::TakeOver(uint32_t visitor, Lane& lane, bool is_bound) {
  VisitorLane& left = *visitors_[visitor];
  if (!left.context) {
    DeviceQueue::Dispatched dispatched = *std::exchange(left.dispatched, std::nullopt);
    parts_.queue.LeaveVisit(visitor);
    RunOrGiveBack(lane, std::move(dispatched), is_bound);
    return;
  }
  const std::shared_ptr<CallState> call = left.dispatched->task->call();
  const auto abort = [events = &parts_.events, index = left.stream->index(), task = left.task] {
    events->OnCancelled(index, task);
  };
  // If it was cancelled in between, nobody knew whom to tell.
  if (!call->OnCancel(abort)) left.stream->AbortTask(left.task);
  lane.hold.Begin();
  FinishVisit(visitor);
  lane.hold.End();
}

void LaneGroup::FinishVisit(uint32_t visitor) {
  VisitorLane& lane = *visitors_[visitor];
  lane.dispatched->task->Finish();
  DeviceQueue::Dispatched dispatched = *std::exchange(lane.dispatched, std::nullopt);
  dispatched.task->call()->OnCancel(nullptr);
  lane.context.reset();
  dispatched.pinned = {};  // the results have their own
  const absl::Duration took = absl::Now() - lane.start;
  LaneEvents& events = parts_.events;
  parts_.queue.EndVisit(visitor, dispatched.lease, took);
  // From here on the group may be gone, but not its owner.
  events.OnTaskEnded(dispatched.task->demand().tenant, took);
  dispatched.task->Answer();
}

void LaneGroup::RunTask(Lane& lane, DeviceQueue::Dispatched dispatched) {
  LaneTask& task = *dispatched.task;
  LaneContext context{*lane.stream,
                      *lane.plans,
                      parts_.pinned,
                      parts_.workspace_limits,
                      parts_.execution_timeout,
                      std::move(dispatched.pinned),
                      /*staging=*/{},
                      &lane.hold};
  const uint64_t id = lane.stream->BeginTask();
  // A call that is cancelled already is noticed by the task itself.
  task.call()->OnCancel([events = &parts_.events, index = lane.stream->index(), id] {
    events->OnCancelled(index, id);
  });
  const absl::Time start = absl::Now();
  lane.hold.Begin();
  task.Run(context);
  lane.hold.End();
  task.call()->OnCancel(nullptr);
  context.pinned_allowance = {};  // the results have their own
  const absl::Duration took = absl::Now() - start;
  // Counted before the answer leaves, so that a caller who has it sees it counted.
  parts_.queue.TaskEnded(dispatched.lease, took);
  parts_.events.OnTaskEnded(task.demand().tenant, took);
  task.Answer();
}

}  // namespace opserve::server
