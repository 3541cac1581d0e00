#include "server/schedule/lanes/device_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"

namespace opserve::server {
namespace {

// Until something of a tenant's device memory may have been given back.
constexpr int64_t kMemoryPushbackMs = 1000;

uint64_t WorkNs(absl::Duration estimate) {
  return static_cast<uint64_t>(absl::ToInt64Nanoseconds(estimate));
}

// Of this queue, where nothing else waits.
std::unique_ptr<LaneTask> ToLaneTask(std::unique_ptr<QueuedTask> task) {
  return std::unique_ptr<LaneTask>(static_cast<LaneTask*>(task.release()));
}

}  // namespace

DeviceQueue::DeviceQueue(DeviceQueueOptions options, std::shared_ptr<PinnedZones> pinned)
    : lanes_(options.fairness.lanes),
      max_age_(options.max_age),
      pinned_(std::move(pinned)),
      give_back_(std::move(options.give_back)),
      kept_is_back_(std::move(options.kept_is_back)),
      tasks_(std::move(options.fairness), options.device_bytes, pinned_.get(), this) {}

std::unique_ptr<LaneTask> DeviceQueue::Leaves(Tasks::Entry entry) {
  // The counters are atomic, so callers may hold the lock or not.
  tenant_depths_.Subtract(entry.tenant, 1);
  tenant_work_ns_.Subtract(entry.tenant, WorkNs(entry.estimate));
  tenant_work_.Subtract(entry.tenant, entry.work);
  return ToLaneTask(std::move(entry.task));
}

std::vector<std::unique_ptr<LaneTask>> DeviceQueue::Leave(std::vector<Tasks::Entry> entries) {
  std::vector<std::unique_ptr<LaneTask>> tasks;
  tasks.reserve(entries.size());
  for (Tasks::Entry& entry : entries) tasks.push_back(Leaves(std::move(entry)));
  return tasks;
}

DeviceQueue::~DeviceQueue() { pinned_->Detach(this); }

absl::Status DeviceQueue::SetTenants(absl::Span<const TenantSettings> tenants) {
  absl::MutexLock lock(&mutex_);
  // First those that reserve nothing any more, so that there is room for the others.
  for (TenantSettings tenant : tenants) {
    tenant.memory.reserved = 0;
    OPSERVE_RETURN_IF_ERROR(tasks_.SetTenant(tenant.tenant, tenant.weight, tenant.memory));
  }
  for (const TenantSettings& tenant : tenants) {
    OPSERVE_RETURN_IF_ERROR(tasks_.SetTenant(tenant.tenant, tenant.weight, tenant.memory));
    tasks_.residents().SetLimit(tenant.tenant, tenant.resident_bytes);
  }
  Publish();
  return absl::OkStatus();
}

absl::Status DeviceQueue::Enqueue(std::unique_ptr<LaneTask>* task, absl::Time now,
                                  std::optional<Dispatched>* started) {
  const TaskDemand& demand = (*task)->demand();
  const absl::Time deadline = (*task)->call()->deadline();
  if (is_closed_ || is_paused_) {
    return MakeError(Reason::kDeviceUnavailable, "the device takes no requests now");
  }
  // A task that cannot end in time is refused while its client can still ask elsewhere, and takes
  // no other task's turn.
  if (!IsDeadlineFeasible(now, deadline, demand.cost, tasks_.known_time(demand.tenant), lanes_)) {
    return DeadlineInfeasible(demand.cost.time, deadline - now);
  }
  Tasks::Entry entry{.task = nullptr,
                     .key = (*task)->call().get(),
                     .tenant = demand.tenant,
                     .priority = demand.priority,
                     .may_hold = demand.may_hold,
                     .must_hold = demand.must_hold,
                     .deadline = deadline,
                     .expiry = std::min(LatestStart(deadline, demand.cost), now + max_age_),
                     .estimate = demand.cost.time,
                     .known_time = KnownTime(demand.cost),
                     .work = demand.work,
                     .device_bytes = demand.device_bytes,
                     .pinned_bytes = demand.pinned_bytes,
                     .connection = demand.connection};
  // For a visitor: the task starts now, or waits as any other.
  if (started != nullptr) {
    if (std::optional<Tasks::Started> at_once = tasks_.TryStart(&entry, now)) {
      CountStart(*at_once, now);
      *started = Dispatched{std::move(*task), at_once->lease, std::move(at_once->pinned)};
      return absl::OkStatus();
    }
  }
  // The entry takes the task only if the queue does: a refused one stays the caller's.
  entry.task = std::move(*task);
  if (absl::Status status = tasks_.Push(&entry, now); !status.ok()) {
    *task = ToLaneTask(std::move(entry.task));
    return status;
  }
  // Counted last, so that a refusal has changed nothing.
  tenant_depths_.Add(entry.tenant, 1);
  tenant_work_ns_.Add(entry.tenant, WorkNs(entry.estimate));  // as Push has put it right
  tenant_work_.Add(entry.tenant, entry.work);
  return absl::OkStatus();
}

absl::Status DeviceQueue::Push(std::unique_ptr<LaneTask>* task, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  OPSERVE_RETURN_IF_ERROR(Enqueue(task, now));
  Publish();
  return absl::OkStatus();
}

absl::StatusOr<DeviceQueue::Visit> DeviceQueue::PushOrStart(std::unique_ptr<LaneTask>* task,
                                                            uint32_t visitor, absl::Time now) {
  // Before the task may be gone.
  const bool is_prompt = (*task)->is_prompt();
  Visit visit;
  Shortage shortage;
  {
    absl::MutexLock lock(&mutex_);
    // A visit overtakes nothing: it needs a free visitor's lane and an empty queue.
    const bool may_visit = is_prompt && visited_ != nullptr && visitor < is_visiting_.size() &&
                           !is_visiting_[visitor] && tasks_.depth() == 0;
    OPSERVE_RETURN_IF_ERROR(Enqueue(task, now, may_visit ? &visit.popped.next : nullptr));
    // A task that had to wait after all, or is late: it takes its turn, as any other.
    if (may_visit && !visit.popped.next) visit.popped = PopTasks(now);
    if (visit.popped.next) {
      is_visiting_[visitor] = true;
      ++visits_;
      visit.lanes = visited_;
    }
    Publish();
    shortage = FindShortage();
  }
  // Without the lock, since other devices' queues and captured runs take theirs, and may come back
  // to this one.
  pinned_->TellWaiting();
  Relieve(shortage);
  return visit;
}

void DeviceQueue::HandOver(uint32_t visitor) {
  absl::MutexLock lock(&mutex_);
  handed_over_.push_back(visitor);
  WakeLane();
}

void DeviceQueue::LeaveVisit(uint32_t visitor) {
  absl::MutexLock lock(&mutex_);
  EndVisit(visitor);
}

void DeviceQueue::EndVisit(uint32_t visitor) {
  is_visiting_[visitor] = false;
  --visits_;
  // A paused queue lets its lanes go when the last visit has ended.
  WakeLane();
}

void DeviceQueue::AllowVisits(LaneGroup* lanes, uint32_t visitors) {
  absl::MutexLock lock(&mutex_);
  visited_ = lanes;
  is_visiting_.assign(visitors, false);
}

DeviceQueue::Popped DeviceQueue::Pop() {
  Popped popped;
  bool is_done = false;
  while (!is_done) {
    Shortage shortage;
    {
      absl::MutexLock lock(&mutex_);
      while (!CanPop()) {
        // A spurious wake-up counts this lane twice, which costs one signal that reaches no lane.
        ++idle_lanes_;
        may_pop_.Wait(&mutex_);
      }
      is_done = PopOnce(&popped, absl::Now());
      WakeLane();  // there may be more to do
      shortage = FindShortage();
    }
    pinned_->TellWaiting();
    Relieve(shortage);
  }
  return popped;
}

DeviceQueue::Popped DeviceQueue::TryPop(absl::Time now) {
  Popped popped;
  bool is_done = false;
  while (!is_done) {
    Shortage shortage;
    {
      absl::MutexLock lock(&mutex_);
      is_done = !CanPop() || PopOnce(&popped, now);
      shortage = FindShortage();
    }
    pinned_->TellWaiting();
    Relieve(shortage);
  }
  return popped;
}

bool DeviceQueue::PopOnce(Popped* result, absl::Time now) {
  // Handed-over tasks are on the device already: they come before new ones, and before the end.
  if (!handed_over_.empty()) {
    result->visit = handed_over_.front();
    handed_over_.pop_front();
    return true;
  }
  // A closed queue still hands out the tasks that wait.
  if (is_paused_ || (is_closed_ && tasks_.depth() == 0)) {
    result->is_over = true;
    return true;
  }
  *result = PopTasks(now);
  Publish();
  return result->next || !result->expired.empty();
}

DeviceQueue::Popped DeviceQueue::PopTasks(absl::Time now) {
  Popped result;
  Tasks::Popped popped = tasks_.Pop(now);
  if (popped.started) {
    Tasks::Started& started = *popped.started;
    CountStart(started, now);
    result.next = {Leaves(std::move(started.entry)), started.lease, std::move(started.pinned)};
  }
  // They come along, since only the caller can refuse them: that takes no lock of the queue.
  result.expired = Leave(std::move(popped.expired));
  return result;
}

void DeviceQueue::CountStart(const Tasks::Started& started, absl::Time now) {
  executing_.fetch_add(1);
  busy_.Begin(now);
  tenant_bytes_.Add(started.entry.tenant, started.lease.device_bytes);
  // Until it ends. If it has waited, Leaves subtracts it from the waiting work.
  tenant_work_ns_.Add(started.entry.tenant, WorkNs(started.lease.charge.estimate));
}

void DeviceQueue::TaskGoesOn(absl::Duration so_far, Lease* lease) {
  if (so_far <= lease->charge.estimate) return;
  absl::MutexLock lock(&mutex_);
  tenant_work_ns_.Subtract(lease->charge.tenant, WorkNs(lease->charge.estimate));
  tasks_.GoesOn(so_far, lease);
  tenant_work_ns_.Add(lease->charge.tenant, WorkNs(lease->charge.estimate));
  Publish();
}

void DeviceQueue::TaskEnded(const Lease& lease, absl::Duration actual, absl::Time now,
                            std::optional<uint32_t> visitor) {
  absl::MutexLock lock(&mutex_);
  tenant_bytes_.Subtract(lease.charge.tenant, lease.device_bytes);
  tenant_work_ns_.Subtract(lease.charge.tenant, WorkNs(lease.charge.estimate));
  tasks_.Ended(lease, actual);
  executing_.fetch_sub(1);
  busy_.End(now);
  if (visitor) EndVisit(*visitor);
  Publish();
}

std::shared_ptr<void> DeviceQueue::KeepMemory(uint64_t bytes, Lease* lease) {
  lease->device_bytes -= bytes;
  keeping_.fetch_add(1);
  return {this, [tenant = lease->charge.tenant, bytes](void* queue) {
            static_cast<DeviceQueue*>(queue)->EndKeeping(tenant, bytes);
          }};
}

void DeviceQueue::EndKeeping(uint32_t tenant, uint64_t bytes) {
  GiveMemory(tenant, bytes);
  keeping_.fetch_sub(1);
  kept_is_back_();
}

// Without an entry the task has been handed out, or never came here.
std::unique_ptr<LaneTask> DeviceQueue::Remove(const CallState* call) {
  std::optional<Tasks::Entry> entry;
  {
    absl::MutexLock lock(&mutex_);
    entry = tasks_.Remove(call);
    Publish();
  }
  pinned_->TellWaiting();
  return entry ? Leaves(*std::move(entry)) : nullptr;
}

std::vector<std::unique_ptr<LaneTask>> DeviceQueue::TakeAll() {
  std::vector<Tasks::Entry> entries;
  {
    absl::MutexLock lock(&mutex_);
    entries = tasks_.TakeAll();
    // Nobody waits now; without this the last sample would stay.
    CollectLags();
    Publish();
  }
  pinned_->TellWaiting();
  return Leave(std::move(entries));
}

std::vector<std::unique_ptr<LaneTask>> DeviceQueue::TakeExpired(absl::Time now) {
  std::vector<Tasks::Entry> entries;
  {
    absl::MutexLock lock(&mutex_);
    entries = tasks_.TakeExpired(now);
    Publish();
  }
  pinned_->TellWaiting();
  return Leave(std::move(entries));
}

void DeviceQueue::Open() {
  absl::MutexLock lock(&mutex_);
  // No lane waits yet: their threads start after this.
  is_paused_ = false;
}

std::vector<std::unique_ptr<LaneTask>> DeviceQueue::Pause() {
  {
    absl::MutexLock lock(&mutex_);
    is_paused_ = true;
    // No visit begins from here on; lanes end when those under way have ended.
    visited_ = nullptr;
    WakeLane();
  }
  return TakeAll();
}

void DeviceQueue::Close() {
  absl::MutexLock lock(&mutex_);
  is_closed_ = true;
  WakeLane();
}

absl::StatusOr<std::shared_ptr<void>> DeviceQueue::TakeMemory(uint32_t tenant, uint64_t bytes) {
  absl::StatusOr<std::shared_ptr<void>> taken;
  {
    absl::MutexLock lock(&mutex_);
    taken = TryTakeMemory(tenant, bytes);
  }
  // Without the lock: memory that comes back is given to this queue by GiveMemory, which takes it.
  if (!absl::IsResourceExhausted(taken.status()) || give_back_ == nullptr) return taken;
  const bool is_own_limit = ErrorReasonOf(taken.status()) == Reason::kTenantMemory;
  if (!give_back_(is_own_limit ? std::optional(tenant) : std::nullopt)) return taken;
  absl::MutexLock lock(&mutex_);
  return TryTakeMemory(tenant, bytes);
}

absl::StatusOr<std::shared_ptr<void>> DeviceQueue::TakeSpareMemory(uint32_t tenant,
                                                                   uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  // Memory that can be done without is for times when no task waits for any.
  if (!tasks_.memory().waiting().empty()) {
    return MakeError(Reason::kDeviceMemory, "tenants wait for device memory", kMemoryPushbackMs);
  }
  return TryTakeMemory(tenant, bytes);
}

absl::StatusOr<std::shared_ptr<void>> DeviceQueue::TryTakeMemory(uint32_t tenant, uint64_t bytes) {
  OPSERVE_RETURN_IF_ERROR(tasks_.CheckCanEverFit(tenant, bytes));
  OPSERVE_RETURN_IF_ERROR(tasks_.residents().Check(tenant, bytes));
  if (tasks_.TryTakeMemory(tenant, bytes)) {
    tenant_bytes_.Add(tenant, bytes);
    Publish();
    return ShareOf(tenant, bytes);
  }
  const bool is_own_limit = tasks_.IsAboveHardLimit(tenant, bytes);
  const MemoryZones& memory = tasks_.memory();
  return MakeError(
      is_own_limit ? Reason::kTenantMemory : Reason::kDeviceMemory,
      is_own_limit
          ? absl::StrCat("the tenant cannot get ", bytes, " bytes more of the device: it has ",
                         memory.used(tenant), " of its limit of ", memory.limits(tenant).hard,
                         " bytes (device_memory.hard_bytes)")
          : absl::StrCat(
                "the tenant cannot get ", bytes, " bytes of the device now: the ",
                memory.capacity(),
                " bytes that the daemon may take of it "
                "(--workspace_max_bytes) are in use or reserved for others; the tenant has ",
                memory.used(tenant)),
      kMemoryPushbackMs);
}

std::shared_ptr<void> DeviceQueue::ShareOf(uint32_t tenant, uint64_t bytes) {
  return {this, [tenant, bytes](void* queue) {
            static_cast<DeviceQueue*>(queue)->GiveMemory(tenant, bytes);
          }};
}

DeviceQueue::Shortage DeviceQueue::FindShortage() const {
  Shortage shortage;
  const MemoryZones& memory = tasks_.memory();
  if (give_back_ == nullptr || memory.waiting().empty()) return shortage;
  shortage.is_of_all = memory.AnybodyWaits();
  if (!shortage.is_of_all) {
    shortage.tenants.assign(memory.waiting().begin(), memory.waiting().end());
  }
  return shortage;
}

void DeviceQueue::Relieve(const Shortage& shortage) {
  // Without give_back_ the shortage is empty.
  if (shortage.is_of_all) give_back_(std::nullopt);
  for (const uint32_t tenant : shortage.tenants) give_back_(tenant);
}

absl::Status DeviceQueue::CheckCanEverHold(uint32_t tenant, uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  OPSERVE_RETURN_IF_ERROR(tasks_.CheckCanEverFit(tenant, bytes));
  const absl::Status fits = tasks_.residents().Check(tenant, bytes);
  // Memory that is only taken now is no reason to say never.
  return absl::IsFailedPrecondition(fits) ? fits : absl::OkStatus();
}

uint64_t DeviceQueue::RoomFor(uint32_t tenant) {
  absl::MutexLock lock(&mutex_);
  const MemoryZones& memory = tasks_.memory();
  // Both bounds hold: the tenant's for resident tensors, and the device's own.
  return std::min(tasks_.residents().Left(tenant), memory.capacity() - memory.used());
}

void DeviceQueue::GiveMemory(uint32_t tenant, uint64_t bytes) {
  tenant_bytes_.Subtract(tenant, bytes);
  absl::MutexLock lock(&mutex_);
  tasks_.GiveMemory(tenant, bytes);
  Publish();
}

void DeviceQueue::PinnedMemoryMayFit(uint32_t tenant) {
  absl::MutexLock lock(&mutex_);
  tasks_.PinnedMemoryMayFit(tenant);
  Publish();
}

void DeviceQueue::ConnectionMayFit(uint64_t connection) {
  absl::MutexLock lock(&mutex_);
  tasks_.ConnectionMayFit(connection);
  Publish();
}

std::vector<DeviceQueue::TenantState> DeviceQueue::TenantStates(
    absl::Span<const uint32_t> tenants) {
  absl::MutexLock lock(&mutex_);
  std::vector<TenantState> states;
  for (uint32_t tenant : tenants) {
    states.push_back({tasks_.depth(tenant), tasks_.memory().used(tenant), tasks_.Lag(tenant)});
  }
  return states;
}

void DeviceQueue::SampleLags() {
  absl::MutexLock lock(&mutex_);
  CollectLags();
}

void DeviceQueue::CollectLags() {
  std::array<std::optional<int64_t>, kTenantSlots> lags;
  tasks_.VisitLags([&](uint32_t tenant, absl::Duration lag) {
    std::optional<int64_t>& seen = lags[TenantSlot(tenant)];
    // Tenants that share a slot: the one furthest behind counts.
    seen = std::max(seen.value_or(INT64_MIN), absl::ToInt64Nanoseconds(lag));
  });
  for (size_t slot = 0; slot < kTenantSlots; ++slot) {
    lags_ns_[slot].store(lags[slot].value_or(0), std::memory_order_relaxed);
  }
}

void DeviceQueue::Publish() {
  may_start_ = tasks_.MayStart();
  waits_for_memory_.store(tasks_.memory().AnybodyWaits(), std::memory_order_relaxed);
  booked_bytes_.store(tasks_.memory().used(), std::memory_order_relaxed);
  depth_.store(tasks_.depth());
  oldest_arrival_ns_.store(tasks_.depth() == 0 ? 0 : absl::ToUnixNanos(tasks_.oldest_arrival()),
                           std::memory_order_relaxed);
  WakeLane();
}

void DeviceQueue::WakeLane() {
  if (idle_lanes_ == 0 || !CanPop()) return;
  --idle_lanes_;
  may_pop_.Signal();
}

}  // namespace opserve::server
