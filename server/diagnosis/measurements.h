// How fast a device copies and launches; medians, so that a disturbance does not count.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/program/operator_table.h"
#include "server/run/lane_context.h"

namespace opserve::server {

// Bytes per second.
struct CopyRates {
  uint64_t to_device = 0;  // from page-locked memory
  uint64_t from_device = 0;
  uint64_t from_pageable = 0;
};

// Copies 16 MiB a few times. The calling thread must be bound to the lane's device.
// Errors: the memory's, and AclCallStatus.
absl::StatusOr<CopyRates> MeasureCopies(LaneContext& lane);

struct LaunchTimes {
  absl::Duration queued;  // until stage two returns
  absl::Duration done;    // until the stream is idle
};

// Launches the operator's golden case over and over, with a plan that is kept. Likewise.
absl::StatusOr<LaunchTimes> MeasureLaunches(const LoadedOperator& op, LaneContext& lane);

}  // namespace opserve::server
