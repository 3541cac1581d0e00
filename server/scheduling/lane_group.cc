#include "server/scheduling/lane_group.h"

#include <utility>

#include "absl/time/clock.h"
#include "ops/catalog/status_macros.h"

namespace opserve::server {
namespace {

bool IsUp(const Device& device) {
  const DeviceState state = device.state();
  return state == DeviceState::kReady || state == DeviceState::kDraining;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LaneGroup>> LaneGroup::Start(const Parts& parts, uint32_t lanes,
                                                            size_t plans_per_lane) {
  auto group = std::unique_ptr<LaneGroup>(new LaneGroup(parts));
  for (uint32_t i = 0; i < lanes; ++i) {
    auto lane = std::make_unique<Lane>();
    OPSERVE_ASSIGN_OR_RETURN(lane->stream, StreamLane::Create(parts.device, i));
    lane->plans =
        std::make_unique<PlanCache>(parts.device.acl(), plans_per_lane, parts.plan_counters);
    group->lanes_.push_back(std::move(lane));
  }
  {
    absl::MutexLock lock(&group->mutex_);
    group->running_ = lanes;
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
    if (!popped.next) continue;
    if (!is_bound) {
      absl::Status status = parts_.device.BindThisThread();
      if (!status.ok()) parts_.device.Quarantine(status.message());
      is_bound = status.ok();
    }
    if (is_bound && IsUp(parts_.device)) {
      RunTask(lane, *std::move(popped.next));
    } else {
      parts_.queue.TaskEnded(popped.next->lease, absl::ZeroDuration());
      parts_.events.OnGivenBack(std::move(popped.next->task));
    }
  }
  absl::MutexLock lock(&mutex_);
  --running_;
}

void LaneGroup::RunTask(Lane& lane, DeviceQueue::Dispatched dispatched) {
  LaneTask& task = *dispatched.task;
  LaneContext context{*lane.stream,
                      *lane.plans,
                      parts_.pinned,
                      parts_.workspace_limits,
                      parts_.execution_timeout,
                      std::move(dispatched.pinned)};
  const uint64_t id = lane.stream->BeginTask();
  // A call that is cancelled already is noticed by the task itself.
  task.call()->OnCancel([events = &parts_.events, index = lane.stream->index(), id] {
    events->OnCancelled(index, id);
  });
  const absl::Time start = absl::Now();
  task.Run(context);
  task.call()->OnCancel(nullptr);
  context.pinned_allowance = {};  // the results have their own
  const absl::Duration took = absl::Now() - start;
  // Counted before the answer leaves, so that a caller who has it sees it counted.
  parts_.queue.TaskEnded(dispatched.lease, took);
  parts_.events.OnTaskEnded(task.demand().tenant, took);
  task.Answer();
}

}  // namespace opserve::server
