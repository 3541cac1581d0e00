// Tasks that wait for a lane of one device: first in, first out, up to a limit.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/scheduling/lane_task.h"

namespace opserve::server {

// Thread-safe. Destroy it only when no thread is inside a method.
//
// Invariants, whenever mutex_ is free: waiting_.size() <= capacity_; nothing waits while it is
// paused; is_closed_ changes once, to true.
class DeviceQueue {
 public:
  // Paused until Open.
  explicit DeviceQueue(size_t capacity) : capacity_(capacity) {}

  // Takes *task, leaving it null, if and only if the result is OK. Never waits.
  // kResourceExhausted (reason "queue_full"): full.
  // kUnavailable (reason "device_unavailable"): paused or closed.
  absl::Status Push(std::unique_ptr<LaneTask>* task) ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits for a task, which counts as executing until TaskEnded. Null: paused, or closed and empty;
  // the lane should end.
  std::unique_ptr<LaneTask> Pop() ABSL_LOCKS_EXCLUDED(mutex_);
  void TaskEnded() { executing_.fetch_sub(1); }

  // Takes the task of this call, if it waits here.
  std::unique_ptr<LaneTask> Remove(const CallState* call) ABSL_LOCKS_EXCLUDED(mutex_);

  // Everything that waits, in order, which waits no more.
  std::vector<std::unique_ptr<LaneTask>> TakeAll() ABSL_LOCKS_EXCLUDED(mutex_);

  // Hands tasks out and takes new ones; neither, and what waited is the caller's now.
  void Open() ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::unique_ptr<LaneTask>> Pause() ABSL_LOCKS_EXCLUDED(mutex_);

  // Refuses what comes from now on; what waits is still handed out.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

  // The following take no lock. Tasks waiting now; taken by Pop and not ended; when the oldest that
  // waits came (the Unix epoch: none).
  size_t depth() const { return depth_.load(); }
  uint32_t executing() const { return executing_.load(); }
  absl::Time oldest_arrival() const {
    return absl::FromUnixNanos(oldest_arrival_ns_.load(std::memory_order_relaxed));
  }
  // No task waits or executes. (Pop counts a task as executing before it stops waiting.)
  bool IsEmpty() const { return depth() == 0 && executing() == 0; }

 private:
  struct Waiting {
    std::unique_ptr<LaneTask> task;
    absl::Time arrival;
  };

  bool CanPop() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return is_closed_ || is_paused_ || !waiting_.empty();
  }
  std::vector<std::unique_ptr<LaneTask>> TakeAllLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PublishDepth() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t capacity_;
  absl::Mutex mutex_;
  std::deque<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  bool is_paused_ ABSL_GUARDED_BY(mutex_) = true;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  // For readers without the lock, written under it (executing_ also by TaskEnded).
  std::atomic<size_t> depth_ = 0;
  std::atomic<uint32_t> executing_ = 0;
  std::atomic<int64_t> oldest_arrival_ns_ = 0;
};

}  // namespace opserve::server
