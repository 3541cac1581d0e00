// Tasks that wait for a lane of one device, and the lanes' threads that wait for tasks: the locks
// and threads around a DispatchQueue, which decides the order.
//
// Waking a lane's thread costs about as much as a small task. So a thread that brings one may run
// it itself, if nothing waits and the task may start at once: it is then a visitor, and has a lane
// of its own for that time. If the task would have to wait, a lane's thread takes it over.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/config/tenant_config.h"
#include "server/observability/tenant_amounts.h"
#include "server/observability/tenant_slot.h"
#include "server/observability/utilization.h"
#include "server/schedule/lanes/lane_task.h"
#include "server/schedule/policy/dispatch_queue.h"
#include "server/schedule/policy/pinned_zones.h"
#include "server/schedule/policy/tenant_settings.h"

namespace opserve::server {

struct DeviceQueueOptions {
  FairQueueOptions fairness;
  uint64_t device_bytes = 0;                   // divided into the tenants' zones
  absl::Duration max_age = absl::Seconds(30);  // longest a task may wait
  // Has booked memory come back that can be done without: of this tenant or, with none, of all
  // tenants. Whether some did. Called with no lock held, before a booking is refused and while
  // tenants wait. Null: there is none.
  std::function<bool(std::optional<uint32_t> tenant)> give_back = nullptr;
  // Called with no lock held when memory is back that an ended task has kept (KeepMemory).
  std::function<void()> kept_is_back = [] {};
};

class LaneGroup;

// Thread-safe. Destroy it only when no thread is inside a method.
//
// Invariants, whenever mutex_ is free: nothing waits while it is paused; is_closed_ changes once,
// to true.
class DeviceQueue final : private PinnedZones::Queue {
 public:
  using Tasks = DispatchQueue;
  using Lease = Tasks::Lease;

  struct Dispatched {
    std::unique_ptr<LaneTask> task;
    Lease lease;  // for TaskEnded
    PinnedAllowance pinned;
  };
  struct Popped {
    std::optional<Dispatched> next;
    std::optional<uint32_t> visit;                   // handed over by this visitor
    std::vector<std::unique_ptr<LaneTask>> expired;  // waited in vain: to be refused
    bool is_over = false;                            // paused or closed: the lane should end
  };

  // Paused until Open. `pinned`: lends tasks their page-locked memory.
  DeviceQueue(DeviceQueueOptions options, std::shared_ptr<PinnedZones> pinned);
  ~DeviceQueue() override;

  // Gives tenants their weights and zones, which together must not reserve more than there is:
  // kFailedPrecondition.
  absl::Status SetTenants(absl::Span<const TenantSettings> tenants) ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes *task, leaving it null, if and only if the result is OK. Never waits.
  // kResourceExhausted (reason "queue_full", "tenant_queue_full" or "work_limit", with a retry
  // hint): full.
  // kFailedPrecondition (reason "tenant_memory", "device_memory" or "too_large", pushback -1): it
  // can never fit.
  // kDeadlineExceeded (reason "deadline_infeasible", pushback -1): it could not end in time.
  // kUnavailable (reason "device_unavailable"): paused or closed.
  absl::Status Push(std::unique_ptr<LaneTask>* task, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // As Push; but if the task is prompt, nothing waits, and it may start on the lane of this
  // visitor, which is free: it is handed out at once, counts as executing until TaskEnded, and is
  // to be brought to `lanes`, which live until then.
  struct Visit {
    Popped popped;               // no `next`: the task is queued, or late already
    LaneGroup* lanes = nullptr;  // for popped.next
  };
  absl::StatusOr<Visit> PushOrStart(std::unique_ptr<LaneTask>* task, uint32_t visitor,
                                    absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Has a lane's thread go on with the visitor's task; the visitor's lane stays in use.
  void HandOver(uint32_t visitor) ABSL_LOCKS_EXCLUDED(mutex_);
  // The visitor's lane is free again, and its task goes on on another one.
  void LeaveVisit(uint32_t visitor) ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until there is something to say. A task that it hands out counts as executing until
  // TaskEnded.
  Popped Pop() ABSL_LOCKS_EXCLUDED(mutex_);
  // As Pop, but never waits: an empty result means that there is nothing to say now.
  Popped TryPop(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // A task that was handed out has had a lane for `so_far` and goes on; any number of times, by the
  // thread that has its lease. The excess over its charge is charged now.
  void TaskGoesOn(absl::Duration so_far, Lease* lease) ABSL_LOCKS_EXCLUDED(mutex_);
  // To be called once for each task that was handed out, after it had a lane for `actual`.
  // `visitor`: if the lane was a visitor's, which is free again.
  void TaskEnded(const Lease& lease, absl::Duration actual, absl::Time now,
                 std::optional<uint32_t> visitor = std::nullopt) ABSL_LOCKS_EXCLUDED(mutex_);

  // Before TaskEnded, of a lease that is held: so much of its device memory stays the tenant's,
  // until the last owner of the result is gone, which must be before the queue.
  std::shared_ptr<void> KeepMemory(uint64_t bytes, Lease* lease);

  // Takes the task of this call, if it waits here.
  std::unique_ptr<LaneTask> Remove(const CallState* call) ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes all waiting tasks out of the queue, in order of arrival; TakeExpired only those that have
  // waited in vain.
  std::vector<std::unique_ptr<LaneTask>> TakeAll() ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::unique_ptr<LaneTask>> TakeExpired(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Open hands tasks out and takes new ones. Pause ends both, and gives the waiting tasks back.
  void Open() ABSL_LOCKS_EXCLUDED(mutex_);
  // Until it pauses: `lanes` has lanes for this many visitors. Lanes' threads are not told that it
  // is paused before all visits have ended.
  void AllowVisits(LaneGroup* lanes, uint32_t visitors) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::unique_ptr<LaneTask>> Pause() ABSL_LOCKS_EXCLUDED(mutex_);

  // Refuses new tasks from now on; waiting ones are still handed out.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

  // Books device memory for a tenant's resident tensor, until the last owner of the result is gone,
  // which must be before the queue. The tenant gets no more than its resident_bytes.
  // kFailedPrecondition (reason "tenant_memory", pushback -1): never.  kResourceExhausted (reason
  // "tenant_memory" or "device_memory", with a retry hint): not now.
  absl::StatusOr<std::shared_ptr<void>> TakeMemory(uint32_t tenant, uint64_t bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Likewise of memory that can be done without: only what nobody waits for.
  absl::StatusOr<std::shared_ptr<void>> TakeSpareMemory(uint32_t tenant, uint64_t bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // kFailedPrecondition: as TakeMemory, which would never succeed.
  absl::Status CheckCanEverHold(uint32_t tenant, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // An estimate of the bytes TakeMemory would book for the tenant now.
  uint64_t RoomFor(uint32_t tenant) ABSL_LOCKS_EXCLUDED(mutex_);

  // Booked memory of uploads that is not written yet, for watching; takes no lock. An upload adds
  // its booked bytes, and subtracts those that it has written or never will.
  void AddUnwritten(uint64_t bytes) { unwritten_bytes_.fetch_add(bytes); }
  void SubtractUnwritten(uint64_t bytes) { unwritten_bytes_.fetch_sub(bytes); }
  uint64_t unwritten_bytes() const { return unwritten_bytes_.load(); }
  // All device memory that is booked: of tasks that execute, resident tensors and uploads.
  uint64_t booked_bytes() const { return booked_bytes_.load(std::memory_order_relaxed); }

  // A tenant's tasks and memory here now.
  struct TenantState {
    size_t queued = 0;
    uint64_t device_bytes = 0;
    absl::Duration lag;  // behind its share of lane time
  };
  std::vector<TenantState> TenantStates(absl::Span<const uint32_t> tenants)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Measures the lag of every tenant that waits, for LagOfSlot.
  void SampleLags() ABSL_LOCKS_EXCLUDED(mutex_);

  // The following take no lock. Device memory that tenants have; tasks that wait, by tenant and all
  // together; taken by Pop and not ended; when the oldest that waits came (the Unix epoch: none).
  const TenantAmounts& tenant_bytes() const { return tenant_bytes_; }
  const TenantAmounts& tenant_depths() const { return tenant_depths_; }
  // Lane time of a tenant's tasks, those that wait and those that execute, as estimated; of tenants
  // that share a slot together.
  absl::Duration WorkOf(uint32_t tenant) const {
    return absl::Nanoseconds(static_cast<int64_t>(tenant_work_ns_.OfSlot(TenantSlot(tenant))));
  }
  // The time that this work takes on all lanes.
  absl::Duration DrainTime(uint32_t tenant) const { return WorkOf(tenant) / lanes_; }
  // Work of the tasks that wait, in elements.
  const TenantAmounts& tenant_work() const { return tenant_work_; }
  size_t depth() const { return depth_.load(); }
  uint32_t executing() const { return executing_.load(); }
  // Ended tasks whose memory is kept: their results still leave the device.
  uint32_t keeping() const { return keeping_.load(); }
  absl::Time oldest_arrival() const {
    return absl::FromUnixNanos(oldest_arrival_ns_.load(std::memory_order_relaxed));
  }
  // TenantState::lag at the last sample, of the tenant that was furthest behind of those in a slot.
  absl::Duration LagOfSlot(size_t slot) const {
    return absl::Nanoseconds(lags_ns_[slot].load(std::memory_order_relaxed));
  }
  // Some tenant waits for device memory.
  bool WaitsForMemory() const { return waits_for_memory_.load(std::memory_order_relaxed); }
  // The time in which tasks were executing, since the queue was made.
  absl::Duration BusyTimeUntil(absl::Time now) const { return busy_.Total(now); }
  // No task waits or executes, and no results leave the device. (Each is counted as the next before
  // it is not the one any more.)
  bool IsEmpty() const { return depth() == 0 && executing() == 0 && keeping() == 0; }

 private:
  bool CanPop() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return is_closed_ || may_start_ || !handed_over_.empty() || (is_paused_ && visits_ == 0);
  }
  // Makes *task wait, if it may. `started`, if not null, while nothing waits: it may start instead.
  absl::Status Enqueue(std::unique_ptr<LaneTask>* task, absl::Time now,
                       std::optional<Dispatched>* started = nullptr)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The next task to start, now counted as executing.
  Popped PopTasks(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts a task as executing, until TaskEnded.
  void CountStart(const Tasks::Started& started, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndVisit(uint32_t visitor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Take entries out of the counts of waiting tasks.
  std::unique_ptr<LaneTask> Leaves(Tasks::Entry entry);
  std::vector<std::unique_ptr<LaneTask>> Leave(std::vector<Tasks::Entry> entries);
  void CollectLags() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Once CanPop. Whether there is something to return.
  bool PopOnce(Popped* popped, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::shared_ptr<void>> TryTakeMemory(uint32_t tenant, uint64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Stands for booked bytes, and has no object: its deleter books them back.
  std::shared_ptr<void> ShareOf(uint32_t tenant, uint64_t bytes);
  void EndKeeping(uint32_t tenant, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveMemory(uint32_t tenant, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // The tenants for which memory is to be given back: all, none, or those that wait for their own.
  struct Shortage {
    bool is_of_all = false;
    std::vector<uint32_t> tenants;
  };
  Shortage FindShortage() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Relieve(const Shortage& shortage) ABSL_LOCKS_EXCLUDED(mutex_);
  void PinnedMemoryMayFit(uint32_t tenant) override ABSL_LOCKS_EXCLUDED(mutex_);
  void ConnectionMayFit(uint64_t connection) override ABSL_LOCKS_EXCLUDED(mutex_);
  // After every change of tasks_.
  void Publish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // After every change of what CanPop looks at: wakes one lane that waits in Pop, which wakes the
  // next one. (A condition of absl's would be looked at whenever the lock is given back.)
  void WakeLane() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint32_t lanes_;
  const absl::Duration max_age_;
  const std::shared_ptr<PinnedZones> pinned_;
  const std::function<bool(std::optional<uint32_t>)> give_back_;
  const std::function<void()> kept_is_back_;
  TenantAmounts tenant_bytes_;
  TenantAmounts tenant_depths_;
  TenantAmounts tenant_work_ns_;
  TenantAmounts tenant_work_;
  BusyTime busy_;  // begins and ends with mutex_ held
  absl::Mutex mutex_;
  Tasks tasks_ ABSL_GUARDED_BY(mutex_);
  bool is_paused_ ABSL_GUARDED_BY(mutex_) = true;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool may_start_ ABSL_GUARDED_BY(mutex_) = false;
  absl::CondVar may_pop_;
  uint32_t idle_lanes_ ABSL_GUARDED_BY(mutex_) = 0;  // that wait for it and were not woken
  LaneGroup* visited_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::vector<bool> is_visiting_ ABSL_GUARDED_BY(mutex_);  // by visitor
  uint32_t visits_ ABSL_GUARDED_BY(mutex_) = 0;            // under way
  std::deque<uint32_t> handed_over_ ABSL_GUARDED_BY(mutex_);
  // For readers without the lock, written under it.
  std::atomic<size_t> depth_ = 0;
  std::atomic<uint32_t> executing_ = 0;
  std::atomic<int64_t> oldest_arrival_ns_ = 0;
  std::atomic<bool> waits_for_memory_ = false;
  std::atomic<uint64_t> booked_bytes_ = 0;
  // Written without it.
  std::atomic<uint64_t> unwritten_bytes_ = 0;
  std::atomic<uint32_t> keeping_ = 0;
  std::array<std::atomic<int64_t>, kTenantSlots> lags_ns_ = {};  // by TenantSlot
};

}  // namespace opserve::server
