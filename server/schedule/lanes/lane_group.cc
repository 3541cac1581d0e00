#include "server/schedule/lanes/lane_group.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "proto/status/status_macros.h"

namespace opserve::server {
namespace {

// For the payloads of a prompt task and the gaps between them.
constexpr size_t kStagingBytes = 80 << 10;

bool IsUp(const Device& device) {
  const DeviceState state = device.state();
  return state == DeviceState::kReady || state == DeviceState::kDraining;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LaneGroup>> LaneGroup::Start(const Parts& parts, const Size& size) {
  auto group = std::unique_ptr<LaneGroup>(new LaneGroup(parts));
  const uint32_t all_lanes = size.lanes + size.visitors;
  // Not of the pool for results, which is booked to the last byte.
  group->staging_ = PinnedPool::Create(parts.device.acl(), all_lanes * kStagingBytes);
  for (uint32_t i = 0; i < all_lanes; ++i) {
    OPSERVE_ASSIGN_OR_RETURN(std::unique_ptr<Lane> lane, group->MakeLane(i, size.plans_per_lane));
    if (i >= size.lanes) lane->visitor = i - size.lanes;
    (lane->visitor ? group->visitors_ : group->lanes_).push_back(std::move(lane));
  }
  {
    absl::MutexLock lock(&group->mutex_);
    group->running_ = size.lanes;
  }
  // The threads refer to elements of lanes_, which does not change any more.
  for (const std::unique_ptr<Lane>& lane : group->lanes_) {
    lane->thread = std::thread([group = group.get(), &lane] { group->Serve(*lane); });
  }
  return group;
}

absl::StatusOr<std::unique_ptr<LaneGroup::Lane>> LaneGroup::MakeLane(uint32_t index,
                                                                     size_t plans) const {
  auto lane = std::make_unique<Lane>();
  OPSERVE_ASSIGN_OR_RETURN(lane->stream, StreamLane::Create(parts_.device, index));
  lane->plans = std::make_unique<PlanCache>(parts_.device.acl(), plans, parts_.plan_counters);
  OPSERVE_ASSIGN_OR_RETURN(lane->staging, staging_->Allocate(kStagingBytes));
  return lane;
}

LaneGroup::~LaneGroup() {
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    if (lane->thread.joinable()) lane->thread.join();
  }
  // First the captured runs, which use plans and streams of the lanes.
  parts_.captured.DropAll(CapturedRuns::kClosed);
  parts_.captured.DestroyEnded();
  lanes_.clear();
  visitors_.clear();
  staging_->Close();  // their staging buffers are back
}

void LaneGroup::AbortTask(uint32_t lane, uint64_t task) {
  StreamLane& stream =
      // Visitors' lanes are numbered after the others.
      lane < lanes_.size() ? *lanes_[lane]->stream : *visitors_[lane - lanes_.size()]->stream;
  stream.AbortTask(task);
}

void LaneGroup::DropUnusedPlans() {
  for (const auto* lanes : {&lanes_, &visitors_}) {
    for (const std::unique_ptr<Lane>& lane : *lanes) lane->plans->DropUnused();
  }
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

bool LaneGroup::CanRun(const LaneTask& task) const {
  return IsUp(parts_.device) && task.MissingOn(parts_.device.id()) == nullptr;
}

void LaneGroup::Serve(Lane& lane) {
  bool is_bound = false;
  while (true) {
    DeviceQueue::Popped popped = parts_.queue.Pop();
    for (std::unique_ptr<LaneTask>& task : popped.expired) parts_.events.OnExpired(std::move(task));
    if (popped.is_over) break;
    if (!popped.next && !popped.visit) continue;
    // With the first task: a thread that finds the queue paused needs no device.
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
  // Its memory and its share come back before the task goes elsewhere.
  if (!is_bound || !CanRun(*dispatched.task)) {
    parts_.queue.TaskEnded(dispatched.lease, absl::ZeroDuration(), absl::Now());
    parts_.events.OnGivenBack(std::move(dispatched.task));
    return;
  }
  lane.dispatched = std::move(dispatched);
  lane.task = lane.stream->BeginTask();
  AbortOnCancel(lane);  // a call that is cancelled already is noticed by the task itself
  lane.hold.Begin();
  Queue(lane);
  Finish(lane);
}

void LaneGroup::RunVisit(uint32_t visitor, DeviceQueue::Dispatched dispatched) {
  Lane& lane = *visitors_[visitor];
  lane.dispatched = std::move(dispatched);
  // The thread may have been to another device in between.
  bool is_queued = CanRun(*lane.dispatched->task) && parts_.device.BindThisThread().ok();
  if (is_queued) {
    lane.task = lane.stream->BeginTask();
    is_queued = Queue(lane);
  }
  if (is_queued && lane.dispatched->task->IsOver()) {
    Finish(lane);
  } else {
    // It would have to wait, or its results are not there yet: a lane's thread goes on.
    parts_.queue.HandOver(visitor);
  }
}

// Where the visitor's own thread left off.
void LaneGroup::TakeOver(uint32_t visitor, Lane& lane, bool is_bound) {
  Lane& left = *visitors_[visitor];
  // Nothing has happened on the visitor's lane, so the task begins anew on this one.
  if (!left.context) {
    DeviceQueue::Dispatched dispatched = *std::exchange(left.dispatched, std::nullopt);
    parts_.queue.LeaveVisit(visitor);
    RunOrGiveBack(lane, std::move(dispatched), is_bound);
    return;
  }
  // If it was cancelled in between, there was nothing to abort it.
  if (!AbortOnCancel(left)) left.stream->AbortTask(left.task);
  left.context->hold = &lane.hold;
  lane.hold.Begin();
  Finish(left);
}

bool LaneGroup::AbortOnCancel(const Lane& lane) {
  return lane.dispatched->task->call()->OnCancel(
      [events = &parts_.events, index = lane.stream->index(), task = lane.task] {
        events->OnCancelled(index, task);
      });
}

bool LaneGroup::Queue(Lane& lane) {
  lane.start = absl::Now();
  const bool has_thread = !lane.visitor;
  // Captured runs went when the device began to drain, and shall not come again.
  const bool may_capture = parts_.device.state() != DeviceState::kDraining;
  lane.context.emplace(
      LaneContext{*lane.stream, *lane.plans, parts_.pinned, parts_.workspace_limits,
                  parts_.execution_timeout, lane.dispatched->pinned,
                  absl::MakeSpan(static_cast<char*>(lane.staging.data()), lane.staging.size()),
                  has_thread ? &lane.hold : nullptr, /*may_wait=*/has_thread,
                  parts_.queue.DrainTime(lane.dispatched->task->demand().tenant),
                  may_capture ? &parts_.captured : nullptr, lane.dispatched->lease.is_held,
                  /*on_progress=*/nullptr, lane.start});
  // A task that takes longer than it was charged for holds up other tenants from now on, not only
  // when it has ended.
  if (has_thread) {
    lane.context->on_progress = [this, &lane] {
      parts_.queue.TaskGoesOn(absl::Now() - lane.start, &lane.dispatched->lease);
    };
  }
  const bool is_queued = lane.dispatched->task->Queue(*lane.context);
  // By this TakeOver sees that nothing has happened.
  if (!is_queued) lane.context.reset();
  return is_queued;
}

void LaneGroup::Finish(Lane& lane) {
  lane.dispatched->task->Finish();
  if (lane.context->hold != nullptr) lane.context->hold->End();
  DeviceQueue::Dispatched dispatched = *std::exchange(lane.dispatched, std::nullopt);
  dispatched.task->call()->OnCancel(nullptr);
  lane.context.reset();
  dispatched.pinned = {};  // the results have their own
  const absl::Time now = absl::Now();
  const absl::Duration took = now - lane.start;
  dispatched.task->KeepMemory(
      [&](uint64_t bytes) { return parts_.queue.KeepMemory(bytes, &dispatched.lease); });
  LaneEvents& events = parts_.events;
  // Counted before the answer leaves, so that a caller that has it sees it counted. From here on
  // the group may be gone, but not its owner.
  parts_.queue.TaskEnded(dispatched.lease, took, now, lane.visitor);
  events.OnTaskEnded(*dispatched.task, took);
  dispatched.task->Answer();
}

}  // namespace opserve::server
