// What a task has of a device while it runs on one of its lanes.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/device/device.h"
#include "server/device/pinned_pool.h"
#include "server/device/stream_lane.h"
#include "server/execution/plan_cache.h"

namespace opserve::server {

// Amplification guard on workspaces, whose size is known when stage one has run.
struct WorkspaceLimits {
  uint64_t max_bytes = UINT64_MAX;
  uint64_t max_ratio = 1024;  // to the bytes of the program's inputs, with 1 MiB more
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
  // Page-locked memory of the lane, for what small tasks send to the device. Empty: it has none.
  absl::Span<char> staging = {};
};

}  // namespace opserve::server
