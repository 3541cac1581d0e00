// The parts of a device that a task uses while it runs on one of its lanes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/device/device.h"
#include "server/device/memory/pinned_pool.h"
#include "server/device/stream_lane.h"
#include "server/run/captured_runs.h"
#include "server/run/plan_cache.h"

namespace opserve::server {

// Amplification guard on workspaces, whose size is known when stage one has run.
struct WorkspaceLimits {
  uint64_t max_bytes = UINT64_MAX;
  uint64_t max_ratio = 1024;  // to the bytes of the program's inputs, with 1 MiB more
};

// Since when a lane's thread has been at one step on the device: a copy, a launch, or the wait for
// kernels. Thread-safe; written by the lane's thread.
class LaneHold {
 public:
  void Begin() { since_ns_.store(absl::GetCurrentTimeNanos(), std::memory_order_relaxed); }
  void End() { since_ns_.store(kFree, std::memory_order_relaxed); }
  // InfiniteFuture: it is at none.
  absl::Time since() const {
    const int64_t ns = since_ns_.load(std::memory_order_relaxed);
    return ns == kFree ? absl::InfiniteFuture() : absl::FromUnixNanos(ns);
  }

 private:
  static constexpr int64_t kFree = INT64_MAX;
  std::atomic<int64_t> since_ns_ = kFree;
};

// Used by the lane's thread alone, which is bound to the device.
struct LaneContext {
  StreamLane& lane;
  PlanCache& plans;    // of this lane
  PinnedPool& pinned;  // of the daemon
  const WorkspaceLimits& workspace_limits;
  // Longest a task may wait for the device; then its stream is aborted.
  absl::Duration execution_timeout;
  // For all that the task takes of `pinned`.
  PinnedAllowance pinned_allowance = {};
  // Page-locked memory of the lane: payloads that fit go to the device by one copy. Empty: none.
  absl::Span<char> staging = {};
  // Of the lane's thread; null: nobody watches.
  LaneHold* hold = nullptr;
  // False: the thread has other things to do, and leaves a task that has to wait to another one.
  bool may_wait = true;
  // Until the tenant's tasks on the device, this one among them, will probably have ended.
  absl::Duration drain_time = absl::ZeroDuration();
  // Of the device, for all its lanes. Null: nothing is captured.
  CapturedRuns* captured = nullptr;
  // The task's results stay in device memory until they have left (held_results.h), instead of
  // being copied to page-locked memory when it has ended: its memory is booked for that long.
  bool holds_results = false;
  // Called when a part of the task has ended on the device and more follows. Null: nobody asks.
  std::function<void()> on_progress = nullptr;
  absl::Time start = absl::Now();  // of the task on the lane

  // The next step on the device begins.
  void BeginStep() const {
    if (hold != nullptr) hold->Begin();
  }
  // A wait for memory that other requests hold follows: the device holds up nothing.
  void BeginWait() const {
    if (hold != nullptr) hold->End();
  }
};

}  // namespace opserve::server
