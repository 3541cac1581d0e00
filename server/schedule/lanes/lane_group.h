// The lanes of a device while it is up: a stream, a plan cache and a thread each, and lanes without
// a thread for visitors (device_queue.h). Made anew after every reset of the device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/device/device.h"
#include "server/device/memory/pinned_pool.h"
#include "server/device/stream_lane.h"
#include "server/run/lane_context.h"
#include "server/run/plan_cache.h"
#include "server/schedule/lanes/device_queue.h"

namespace opserve::server {

// The lanes' messages to their owner, on their threads or those of callers. Nothing may block.
// Outlives the calls with tasks on the lanes.
class LaneEvents {
 public:
  virtual ~LaneEvents() = default;
  // The call of a running task is cancelled: have AbortTask called, on a thread of the device.
  virtual void OnCancelled(uint32_t lane, uint64_t task) = 0;
  // A task that was taken from the queue when the device was not up any more.
  virtual void OnGivenBack(std::unique_ptr<LaneTask> task) = 0;
  // A task that waited in vain.
  virtual void OnExpired(std::unique_ptr<LaneTask> task) = 0;
  // A task of this tenant has ended, after this time on the lane.
  virtual void OnTaskEnded(const LaneTask& task, absl::Duration took) = 0;
};

class LaneGroup {
 public:
  // Borrowed by the lanes; all of it outlives the group.
  struct Parts {
    Device& device;
    DeviceQueue& queue;
    PinnedPool& pinned;
    PlanCacheCounters& plan_counters;
    CapturedRuns& captured;  // of the device; empty when the group has gone
    LaneEvents& events;
    WorkspaceLimits workspace_limits;
    absl::Duration execution_timeout;
  };

  struct Size {
    uint32_t lanes = 1;
    uint32_t visitors = 0;
    size_t plans_per_lane = 1;
  };

  // Makes the lanes and starts their threads, which end when the queue pauses or closes. The
  // calling thread must be bound to the device. Errors: AclCallStatus.
  static absl::StatusOr<std::unique_ptr<LaneGroup>> Start(const Parts& parts, const Size& size);

  // Runs the task that DeviceQueue::PushOrStart handed out, on the calling thread, which is the
  // visitor; a task that would have to wait continues on a lane's thread.
  void RunVisit(uint32_t visitor, DeviceQueue::Dispatched dispatched);

  // Waits for the threads; destroys captured runs, plans and streams. The calling thread must be
  // bound to the device.
  ~LaneGroup();
  LaneGroup(const LaneGroup&) = delete;
  LaneGroup& operator=(const LaneGroup&) = delete;

  // Whether all threads have ended, waiting at most for `timeout`.
  bool AwaitEnd(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);

  // When the last lane began the step on the device that it is still at; InfiniteFuture: some lane
  // is at none.
  absl::Time AllHeldSince() const;

  // Has each lane forget plans of programs that have gone. The calling thread must be bound to the
  // device.
  void DropUnusedPlans();

  // As StreamLane::AbortTask; the calling thread must be bound to the device.
  void AbortTask(uint32_t lane, uint64_t task);

 private:
  // A lane and its task. Used by one thread at a time: its own, or, as long as a visitor's lane has
  // a task, the visitor's or the one to which that has handed over.
  struct Lane {
    std::unique_ptr<StreamLane> stream;
    std::unique_ptr<PlanCache> plans;  // its executors go before the stream
    PinnedBuffer staging;
    std::optional<uint32_t> visitor;  // none: it has a thread
    LaneHold hold;                    // of its thread
    std::thread thread;
    std::optional<DeviceQueue::Dispatched> dispatched;
    std::optional<LaneContext> context;  // of a task after its first half
    absl::Time start;                    // of that half
    uint64_t task = 0;                   // for AbortTask
  };

  explicit LaneGroup(const Parts& parts) : parts_(parts) {}
  absl::StatusOr<std::unique_ptr<Lane>> MakeLane(uint32_t index, size_t plans) const;
  // Whether the device is up and offers the task's operators. An operator may come out wrong while
  // tasks wait.
  bool CanRun(const LaneTask& task) const;
  void Serve(Lane& lane) ABSL_LOCKS_EXCLUDED(mutex_);
  void TakeOver(uint32_t visitor, Lane& lane, bool is_bound);
  void RunOrGiveBack(Lane& lane, DeviceQueue::Dispatched dispatched, bool is_bound);
  // The halves of the lane's task. The first is false where it would have had to wait; after the
  // second the group may be gone if the calling thread is none of its own.
  bool Queue(Lane& lane);
  void Finish(Lane& lane);
  // Whether the task's call was not cancelled yet. If that happens later, the task is aborted.
  bool AbortOnCancel(const Lane& lane);
  bool HaveAllEnded() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return running_ == 0; }

  const Parts parts_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::unique_ptr<Lane>> visitors_;
  std::shared_ptr<PinnedPool> staging_;
  absl::Mutex mutex_;
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;  // threads
};

}  // namespace opserve::server
