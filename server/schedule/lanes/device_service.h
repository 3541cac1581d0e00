// One device in service: its queue, a thread per lane that takes tasks from it, and a supervisor.
//
// Only the lanes' threads wait for the device, so no gRPC thread ever does. Copies, both stages and
// result copies of different requests overlap, one request per lane. The supervisor is the one
// thread that brings the device up, repairs it when it breaks, aborts cancelled tasks and trims the
// memory pool.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/device/device.h"
#include "server/device/memory/pinned_pool.h"
#include "server/observability/tenant_slot.h"
#include "server/observability/utilization.h"
#include "server/program/operator_table.h"
#include "server/run/captured_runs.h"
#include "server/run/plan_cache.h"
#include "server/schedule/lanes/device_queue.h"
#include "server/schedule/lanes/lane_group.h"
#include "server/schedule/lanes/lane_task.h"
#include "server/schedule/lanes/supervision.h"

namespace opserve::server {

struct DeviceServiceOptions {
  uint32_t lanes = 4;
  uint32_t visitors = 0;  // threads that may be a Visitor
  size_t queue_capacity = 4096;
  size_t queue_capacity_per_tenant = 256;
  uint64_t queue_work_per_tenant = UINT64_MAX;  // in elements
  absl::Duration queue_max_age = absl::Seconds(30);
  // Longest a program may run on the device; then its stream is aborted.
  absl::Duration execution_timeout = absl::Seconds(30);
  // Beyond it: how long all lanes may stay at one step on the device before it leaves service (more
  // than aborting a stream takes), and then how long they may take to let go of it before it counts
  // as failed.
  absl::Duration hold_grace = absl::Seconds(15);
  absl::Duration park_timeout = absl::Seconds(30);
  DeviceMemoryPool::Options pool = {.max_bytes = 0};
  uint64_t max_workspace_bytes = 0;  // of one invocation; 0: a quarter of the device's memory
  uint64_t max_workspace_ratio = 1024;
  uint32_t plan_cache_entries = 1024;  // over all lanes
  uint64_t captured_max_bytes = 0;     // of captured runs' arenas; 0: nothing is captured
  uint32_t captures_per_program = 1;   // captured runs that a program may have at once
  // Before attempts to bring a broken device back: doubled from the first to the longest while
  // attempts fail or the device was up for less than twice the last wait. The first fault of a
  // device that was up for longer is attended to at once.
  absl::Duration first_recovery_wait = absl::Seconds(1);
  absl::Duration longest_recovery_wait = absl::Minutes(1);
};

// Thread-safe.
class DeviceService final : private LaneEvents, private SupervisedDevice {
 public:
  // The service's calls to its surroundings, on its own threads; they must not block.
  struct Hooks {
    // Hands *task to another device; takes it if and only if one takes it.
    std::function<bool(std::unique_ptr<LaneTask>* task)> move;
    // The device was reset; its memory has lost its contents.
    std::function<void(int32_t device, uint64_t generation)> was_reset;
    // A device drains: its resident tensors are to be moved, until then and as far as they can be
    // (Moves). Null: they stay, and tasks that use them are refused.
    std::function<void()> drains = nullptr;
    std::function<void()> state_changed;
  };

  // Starts the supervisor, which opens the device, checks every operator's golden values on it and
  // serves. Objects that `operators` and `acl` refer to outlive the service.
  DeviceService(const AclLibrary& acl, int32_t id, const OperatorTable& operators,
                std::shared_ptr<PinnedPool> pinned, std::shared_ptr<PinnedZones> pinned_zones,
                const DeviceServiceOptions& options, Hooks hooks);

  // Serves the queued tasks, then ends the threads and closes the device.
  ~DeviceService() override;
  DeviceService(const DeviceService&) = delete;
  DeviceService& operator=(const DeviceService&) = delete;

  // Waits until the first attempt to bring the device up has ended, one way or the other.
  void AwaitFirstAttempt() { first_attempt_.WaitForNotification(); }

  // Takes *task, leaving it null, if and only if the result is OK. Never waits. A Visitor may have
  // run the task, and told its caller, when this returns.
  // kUnavailable (reason "draining" or "device_unavailable"): it does not serve.
  // Those of LaneTask::CheckOfferedBy.
  // Else DeviceQueue::Push's.
  absl::Status Submit(std::unique_ptr<LaneTask>* task);

  // Takes the device out of service: queued tasks move to other devices or end here, running ones
  // end. Tasks that use resident tensors are still taken, until these have moved to other devices.
  // Never waits; returns how many requests moved, 0 if it drains already. kFailedPrecondition: it
  // is not ready.
  absl::StatusOr<uint32_t> BeginDrain();

  // Waits until nothing is queued, runs, leaves the device or moves. kDeadlineExceeded: something
  // still does.
  absl::Status AwaitDrained(absl::Time deadline);

  // Of a device that drains, for the one that moves its resident tensors. The number of this drain.
  uint64_t drains() const { return drains_.load(); }
  // Those of the tenant cannot move, or can after all: its tasks are refused, or taken. Until the
  // next drain begins.
  void SetStuck(uint32_t tenant, bool is_stuck) ABSL_LOCKS_EXCLUDED(stuck_mutex_);
  bool IsStuck(uint32_t tenant) const ABSL_LOCKS_EXCLUDED(stuck_mutex_);
  std::vector<uint32_t> StuckTenants() const ABSL_LOCKS_EXCLUDED(stuck_mutex_);
  // All that can be moved has been, in this drain; or there is more, after all.
  void SetMoved(uint64_t drain, bool are_moved);

  // Puts a draining or quarantined device back into service, at once and after it has proved
  // itself. A ready one tries operators again that it computed wrong, while it serves.
  // kFailedPrecondition: it is none of these.  kDeadlineExceeded: the attempt goes on.  Else why
  // the attempt failed.
  absl::Status Resume(absl::Time deadline);

  // Gives idle memory back to the device; returns the bytes. kDeadlineExceeded.
  absl::StatusOr<uint64_t> TrimPool(absl::Time deadline);

  // Lets go of `object` on the supervisor's thread, which is bound to the device; never waits.
  void DestroyOnDevice(std::shared_ptr<const void> object);

  // Whether it drains, and nothing is queued, runs, leaves it or moves any more.
  bool is_drained() const { return device_.state() == DeviceState::kDraining && IsEmpty(); }
  // Whether it drains and resident tensors that can be moved are still there.
  bool is_moving() const {
    return device_.state() == DeviceState::kDraining && hooks_.drains != nullptr &&
           moved_drain_.load() != drains_.load();
  }

  Device& device() { return device_; }
  const Device& device() const { return device_; }
  uint32_t lanes() const { return options_.lanes; }
  size_t queued() const { return queue_.depth(); }
  absl::Time oldest_arrival() const { return queue_.oldest_arrival(); }
  uint32_t executing() const { return queue_.executing(); }
  size_t queue_capacity() const { return options_.queue_capacity; }
  size_t queue_capacity_per_tenant() const { return options_.queue_capacity_per_tenant; }
  uint64_t queue_work_per_tenant() const { return options_.queue_work_per_tenant; }
  // The part of the last seconds in which at least one lane was executing, those included that
  // still do.
  double utilization() const {
    const absl::Time now = absl::Now();
    return utilization_.RatioUntil(queue_.BusyTimeUntil(now), now);
  }
  // Requests; a transfer counts with its last chunk.
  uint64_t completed() const { return completed_.load(std::memory_order_relaxed); }
  const PlanCacheCounters& plan_counters() const { return plan_counters_; }
  CapturedRuns& captured() { return captured_; }
  const CapturedRuns& captured() const { return captured_; }
  // Tenants' tasks and memory on this device, and memory beside that of tasks.
  DeviceQueue& queue() { return queue_; }
  const DeviceQueue& queue() const { return queue_; }
  // Lane time a tenant has had, by TenantSlot.
  absl::Duration TenantTime(size_t slot) const {
    return absl::Nanoseconds(tenant_time_ns_[slot].load(std::memory_order_relaxed));
  }

 private:
  using Command = std::function<void()>;

  // The supervisor's thread. The methods of SupervisedDevice are for it alone.
  void Supervise();
  absl::Time Now() const override;
  absl::Status Open() override;
  absl::Status Reset() override;
  absl::Status ProveItself(Fault* fault) override;
  bool HasWrongOperators() const override;
  absl::Status StartLanes() override;
  bool HasLanes() const override { return lanes_ != nullptr; }
  absl::Time AllLanesHeldSince() const override;
  void StopWork() override;
  bool AwaitLanesEnd(absl::Duration timeout) override;
  void DropLanes() override;
  void KeepHouse() override;
  void SampleMemory() override;
  void SampleLoad() override;

  // Has the supervisor run `command`.
  void Post(Command command) ABSL_LOCKS_EXCLUDED(mutex_);
  template <typename T>
  absl::StatusOr<T> RunOnSupervisor(std::function<absl::StatusOr<T>()> command,
                                    absl::Time deadline);
  std::deque<Command> AwaitCommands(absl::Time until) ABSL_LOCKS_EXCLUDED(mutex_);

  // Looks at the state again: it may have become quarantined, or empty.
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_);
  // Something that it waited for to be drained has ended.
  void WakeIfDraining() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the device, in its state, takes the task.
  bool Takes(const LaneTask& task) const;
  absl::Status PushOrVisit(std::unique_ptr<LaneTask>* task);
  void CancelQueued(const CallState* call);
  void MoveOrRefuse(std::unique_ptr<LaneTask> task);
  absl::Status NotServing() const;

  void OnCancelled(uint32_t lane, uint64_t task) override;
  void OnGivenBack(std::unique_ptr<LaneTask> task) override;
  void OnExpired(std::unique_ptr<LaneTask> task) override;
  void OnTaskEnded(const LaneTask& task, absl::Duration took) override;

  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return is_closing_ || is_awake_ || !commands_.empty();
  }
  bool IsEmpty() const { return queue_.IsEmpty() && !is_moving(); }

  const OperatorTable& operators_;
  const DeviceServiceOptions options_;
  const std::shared_ptr<PinnedPool> pinned_;
  const Hooks hooks_;
  WorkspaceLimits workspace_limits_;
  Device device_;
  DeviceQueue queue_;
  PlanCacheCounters plan_counters_;
  PlanCacheCounters probe_counters_;  // of golden values, apart from the clients' plans
  CapturedRuns captured_;
  std::atomic<uint64_t> completed_ = 0;
  std::array<std::atomic<int64_t>, kTenantSlots> tenant_time_ns_ = {};
  Utilization utilization_;
  absl::Notification first_attempt_;
  std::atomic<uint64_t> drains_ = 0;       // begun
  std::atomic<uint64_t> moved_drain_ = 0;  // the one whose resident tensors have moved

  mutable absl::Mutex stuck_mutex_;
  absl::flat_hash_set<uint32_t> stuck_ ABSL_GUARDED_BY(stuck_mutex_);  // tenants, in this drain

  absl::Mutex mutex_;
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_awake_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Command> commands_ ABSL_GUARDED_BY(mutex_);

  // Of the supervisor.
  std::unique_ptr<LaneGroup> lanes_;  // null while the device is not up
  Supervision supervision_;

  std::thread supervisor_;  // last: uses the others
};

}  // namespace opserve::server
