// A task's needs, by which a device's queue orders and admits it.
#pragma once

#include <cstdint>

#include "server/schedule/policy/cost_model.h"
#include "server/schedule/policy/fair_queue.h"

namespace opserve::server {

struct TaskDemand {
  uint32_t tenant = 0;
  Priority priority = Priority::kNormal;
  // Its results can stay in device memory (LaneContext::holds_results), instead of pinned_bytes:
  // then all of device_bytes is needed until they have left.
  bool may_hold = false;
  // It keeps all of device_bytes (LaneTask::KeepMemory), and waits until its tenant may.
  bool must_hold = false;
  CostModel::Estimate cost = {};  // lane time it will probably take
  uint64_t work = 0;              // in elements, as operators count it; 0: it only copies
  uint64_t device_bytes = 0;      // device memory it needs while it runs, workspaces aside
  uint64_t pinned_bytes = 0;      // page-locked memory, in whole blocks, until its results are sent
  uint64_t connection = 0;        // that will read the results (PinnedZones::TryTake); 0: none
};

}  // namespace opserve::server
