#include "server/schedule/lanes/device_service.h"

#include <algorithm>
#include <deque>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/run/golden_values.h"
#include "server/schedule/lanes/visitor.h"
#include "server/schedule/policy/cost_model.h"

namespace opserve::server {
namespace {

// A drained device is for other devices or daemons to make up for: time to look for them.
constexpr absl::Duration kDrainRetry = absl::Seconds(1);

DeviceQueueOptions QueueOptions(const DeviceServiceOptions& options, const Device& device,
                                CapturedRuns& captured, std::function<void()> kept_is_back) {
  return {.fairness = {.capacity = options.queue_capacity,
                       .capacity_per_tenant = options.queue_capacity_per_tenant,
                       .work_per_tenant = options.queue_work_per_tenant,
                       .lanes = options.lanes,
                       .random = std::mt19937_64(std::random_device()())},
          .device_bytes = device.memory().options().max_bytes,
          .max_age = options.queue_max_age,
          .give_back =
              [&captured](std::optional<uint32_t> tenant) {
                return captured.GiveMemoryBack(tenant, absl::Now());
              },
          .kept_is_back = std::move(kept_is_back)};
}

// More than the largest golden result.
constexpr size_t kProbePinnedBytes = 1 << 20;

}  // namespace

DeviceService::DeviceService(const AclLibrary& acl, int32_t id, const OperatorTable& operators,
                             std::shared_ptr<PinnedPool> pinned,
                             std::shared_ptr<PinnedZones> pinned_zones,
                             const DeviceServiceOptions& options, Hooks hooks)
    : operators_(operators),
      options_(options),
      pinned_(std::move(pinned)),
      hooks_(std::move(hooks)),
      device_(acl, id, options.pool),
      // The queue takes the address of captured_, which is made later and is used when tasks are.
      queue_(QueueOptions(options, device_, captured_, [this] { WakeIfDraining(); }),
             std::move(pinned_zones)),
      plan_counters_(operators.operators().size()),
      probe_counters_(operators.operators().size()),
      captured_(acl, options.captured_max_bytes, options.captures_per_program,
                [this](uint32_t tenant, uint64_t bytes) {
                  return queue_.TakeSpareMemory(tenant, bytes);
                }),
      supervision_(*this, device_,
                   {.lanes = options.lanes,
                    .execution_timeout = options.execution_timeout,
                    .hold_grace = options.hold_grace,
                    .park_timeout = options.park_timeout,
                    .first_recovery_wait = options.first_recovery_wait,
                    .longest_recovery_wait = options.longest_recovery_wait}) {
  const uint64_t device_bytes = device_.memory_info().total_bytes;
  workspace_limits_.max_ratio = options.max_workspace_ratio;
  // A quarter of the device is the contract's default; a runtime may not tell how much there is.
  workspace_limits_.max_bytes = options.max_workspace_bytes != 0 ? options.max_workspace_bytes
                                : device_bytes != 0              ? device_bytes / 4
                                                                 : UINT64_MAX;
  // Ended captured runs keep their graphs until a thread that is bound to the device destroys them.
  // An allocation's thread is.
  device_.memory().OnShortage([this] {
    const bool came_back = captured_.GiveMemoryBack(std::nullopt, absl::Now());
    captured_.DestroyEnded();
    return came_back;
  });
  device_.OnStateChange([this] {
    Wake();
    hooks_.state_changed();
  });
  supervisor_ = std::thread([this] { Supervise(); });
}

DeviceService::~DeviceService() {
  {
    absl::MutexLock lock(&mutex_);
    is_closing_ = true;
  }
  // The supervisor goes first, since it makes and drops lanes. Then the lanes serve the tasks that
  // still wait, and end.
  supervisor_.join();
  queue_.Close();
  device_.BindThisThread().IgnoreError();
  lanes_.reset();
}

absl::Status DeviceService::NotServing() const {
  const DeviceState state = device_.state();
  if (state == DeviceState::kDraining) {
    return MakeError(
        Reason::kDraining,
        absl::StrCat("device ", device_.id(), " is ", is_drained() ? "drained" : "being drained",
                     ": it serves again when an administrator resumes it"),
        absl::ToInt64Milliseconds(kDrainRetry));
  }
  return MakeError(Reason::kDeviceUnavailable,
                   absl::StrCat("device ", device_.id(), " is ", DeviceStateName(state)));
}

bool DeviceService::Takes(const LaneTask& task) const {
  const DeviceState state = device_.state();
  if (state != DeviceState::kDraining) return state == DeviceState::kReady;
  return hooks_.drains != nullptr && task.uses_residents() && !IsStuck(task.demand().tenant);
}

absl::Status DeviceService::Submit(std::unique_ptr<LaneTask>* task) {
  if (!Takes(**task)) return NotServing();
  OPSERVE_RETURN_IF_ERROR((*task)->CheckOfferedBy(device_.id()));
  // The task may be gone as soon as it is queued; the call is the caller's as well.
  const std::shared_ptr<CallState> call = (*task)->call();
  call->OnCancel([this, call = call.get()] { CancelQueued(call); });
  if (absl::Status status = PushOrVisit(task); !status.ok()) {
    call->OnCancel(nullptr);
    return status;
  }
  // Cancelled before it was queued, when the cancellation could not find it yet.
  if (call->is_cancelled()) CancelQueued(call.get());
  return absl::OkStatus();
}

absl::Status DeviceService::PushOrVisit(std::unique_ptr<LaneTask>* task) {
  // Only polling threads are visitors, and they may run a small task themselves.
  const std::optional<uint32_t> visitor = Visitor::Current();
  if (!visitor) return queue_.Push(task, absl::Now());
  OPSERVE_ASSIGN_OR_RETURN(DeviceQueue::Visit visit,
                           queue_.PushOrStart(task, *visitor, absl::Now()));
  for (std::unique_ptr<LaneTask>& late : visit.popped.expired) OnExpired(std::move(late));
  if (visit.popped.next) visit.lanes->RunVisit(*visitor, *std::move(visit.popped.next));
  return absl::OkStatus();
}

void DeviceService::CancelQueued(const CallState* call) {
  if (std::unique_ptr<LaneTask> task = queue_.Remove(call)) {
    task->Refuse(call->Check());
    Wake();
  }
}

void DeviceService::MoveOrRefuse(std::unique_ptr<LaneTask> task) {
  if (hooks_.move(&task)) return;
  // A device that serves gives a task back if an operator came out wrong while the task waited.
  absl::Status status = task->CheckOfferedBy(device_.id());
  if (status.ok() || device_.state() != DeviceState::kReady) status = NotServing();
  task->Refuse(status);
}

void DeviceService::OnCancelled(uint32_t lane, uint64_t task) {
  // The supervisor aborts the stream: that call may block, and this thread serves clients.
  Post([this, lane, task] {
    if (lanes_ != nullptr) lanes_->AbortTask(lane, task);
  });
  device_.memory().WakeWaiters();  // it may be waiting for memory instead
}

void DeviceService::OnGivenBack(std::unique_ptr<LaneTask> task) { MoveOrRefuse(std::move(task)); }

void DeviceService::OnExpired(std::unique_ptr<LaneTask> task) {
  // An error here is a deadline that has passed or a cancellation, and says so itself.
  absl::Status status = task->call()->Check();
  const absl::Duration left = task->call()->deadline() - absl::Now();
  if (status.ok() && left <= task->demand().cost.time) {
    status = DeadlineInfeasible(task->demand().cost.time, left);
  } else if (status.ok()) {
    const TaskDemand& demand = task->demand();
    const uint64_t room = queue_.RoomFor(demand.tenant);
    const std::string lack = demand.device_bytes > room
                                 ? absl::StrCat(": it needs ", demand.device_bytes,
                                                " bytes of device memory, and ", room, " are free")
                                 : "";
    status = MakeError(
        Reason::kDeadlineExpired,
        absl::StrCat("waited for a device longer than ",
                     absl::FormatDuration(options_.queue_max_age), " (queue_max_age)", lack));
  }
  task->Refuse(status);
  Wake();  // it may be the last one of a device that drains
}

void DeviceService::OnTaskEnded(const LaneTask& task, absl::Duration took) {
  tenant_time_ns_[TenantSlot(task.demand().tenant)].fetch_add(absl::ToInt64Nanoseconds(took),
                                                              std::memory_order_relaxed);
  if (task.ends_request()) completed_.fetch_add(1, std::memory_order_relaxed);
  WakeIfDraining();
}

void DeviceService::WakeIfDraining() {
  if (device_.state() == DeviceState::kDraining) Wake();
}

absl::StatusOr<uint32_t> DeviceService::BeginDrain() {
  uint32_t moved = 0;
  // Before the state changes: from then on the device counts as moving. Where another thread begins
  // the same drain meanwhile, the call of the hook below is for the later number.
  if (device_.state() == DeviceState::kReady) {
    absl::MutexLock lock(&stuck_mutex_);
    stuck_.clear();
    drains_.fetch_add(1);
  }
  if (device_.Transition(DeviceState::kReady, DeviceState::kDraining, "by an administrator")) {
    for (std::unique_ptr<LaneTask>& task : queue_.TakeAll()) {
      // Tasks that no other device takes, for instance because they use resident tensors of this
      // one, are served here.
      if (hooks_.move(&task)) {
        ++moved;
      } else if (absl::Status status = queue_.Push(&task, absl::Now()); !status.ok()) {
        task->Refuse(status);
      }
    }
    captured_.DropAll(CapturedRuns::kDrained);
  } else if (device_.state() != DeviceState::kDraining) {
    return absl::FailedPreconditionError(absl::StrCat("device ", device_.id(), " is ",
                                                      DeviceStateName(device_.state()),
                                                      "; only a ready one can be drained"));
  }
  if (hooks_.drains != nullptr) hooks_.drains();
  return moved;
}

void DeviceService::SetStuck(uint32_t tenant, bool is_stuck) {
  absl::MutexLock lock(&stuck_mutex_);
  is_stuck ? (void)stuck_.insert(tenant) : (void)stuck_.erase(tenant);
}

bool DeviceService::IsStuck(uint32_t tenant) const {
  absl::MutexLock lock(&stuck_mutex_);
  return stuck_.contains(tenant);
}

std::vector<uint32_t> DeviceService::StuckTenants() const {
  if (device_.state() != DeviceState::kDraining) return {};
  absl::MutexLock lock(&stuck_mutex_);
  return {stuck_.begin(), stuck_.end()};
}

void DeviceService::SetMoved(uint64_t drain, bool are_moved) {
  // Drains count from 1.
  moved_drain_.store(are_moved ? drain : 0);
  Wake();
}

absl::Status DeviceService::AwaitDrained(absl::Time deadline) {
  // The condition does not depend on the mutex: Wake, which takes and releases it, makes absl look
  // again.
  absl::MutexLock lock(&mutex_);
  if (!mutex_.AwaitWithDeadline(absl::Condition(this, &DeviceService::IsEmpty), deadline)) {
    return absl::DeadlineExceededError(absl::StrCat(
        "device ", device_.id(), " still drains: ", queued() + executing() + queue_.keeping(),
        " requests are left", is_moving() ? ", and its resident tensors are being moved" : ""));
  }
  return absl::OkStatus();
}

template <typename T>
absl::StatusOr<T> DeviceService::RunOnSupervisor(std::function<absl::StatusOr<T>()> command,
                                                 absl::Time deadline) {
  // Shared with the command, which may run when the caller has given up.
  struct Outcome {
    absl::StatusOr<T> value = absl::DeadlineExceededError("the device is busy with something else");
    absl::Notification is_known;
  };
  auto outcome = std::make_shared<Outcome>();
  Post([outcome, command = std::move(command)] {
    outcome->value = command();
    outcome->is_known.Notify();
  });
  if (!outcome->is_known.WaitForNotificationWithDeadline(deadline)) {
    return absl::DeadlineExceededError(
        absl::StrCat("device ", device_.id(), " has not answered yet"));
  }
  return outcome->value;
}

absl::Status DeviceService::Resume(absl::Time deadline) {
  return RunOnSupervisor<bool>(
             [this]() -> absl::StatusOr<bool> {
               OPSERVE_RETURN_IF_ERROR(supervision_.Resume());
               return true;
             },
             deadline)
      .status();
}

absl::StatusOr<uint64_t> DeviceService::TrimPool(absl::Time deadline) {
  return RunOnSupervisor<uint64_t>(
      [this]() -> absl::StatusOr<uint64_t> { return device_.memory().Trim(); }, deadline);
}

void DeviceService::DestroyOnDevice(std::shared_ptr<const void> object) {
  // Where the supervisor ends without running it, it destroys it.
  Post([object = std::move(object)]() mutable { object.reset(); });
}

void DeviceService::Post(Command command) {
  absl::MutexLock lock(&mutex_);
  commands_.push_back(std::move(command));
}

void DeviceService::Wake() {
  absl::MutexLock lock(&mutex_);
  is_awake_ = true;
}

void DeviceService::Supervise() {
  supervision_.Begin();
  first_attempt_.Notify();
  while (true) {
    std::deque<Command> commands = AwaitCommands(supervision_.NextLook());
    {
      absl::MutexLock lock(&mutex_);
      if (is_closing_) break;
    }
    // Before the look, which sees their effects.
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
  // Also after a failed reset: the contents are lost in either case.
  hooks_.was_reset(device_.id(), device_.generation());
  return status;
}

absl::Status DeviceService::ProveItself(Fault* fault) {
  *fault = Fault::kSetUp;
  OPSERVE_ASSIGN_OR_RETURN(std::unique_ptr<StreamLane> probe,
                           // Its index comes after those of lanes and visitors. No lane runs while
                           // it does, or they serve beside it.
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
       .captured = captured_,
       .events = *this,
       .workspace_limits = workspace_limits_,
       .execution_timeout = options_.execution_timeout},
      {.lanes = options_.lanes,
       .visitors = options_.visitors,
       .plans_per_lane = std::max<size_t>(options_.plan_cache_entries / options_.lanes, 1)});
  if (!lanes.ok()) {
    // Back to the state before Open, as the device is not up.
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
  captured_.DropUnusable(absl::Now());
  captured_.DestroyEnded();
  lanes_->DropUnusedPlans();
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
