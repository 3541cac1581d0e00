// Runs a checked program on one lane: the two-stage aclnn flow for each invocation.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/codec/payload_message.h"
#include "server/device/device.h"
#include "server/device/pinned_pool.h"
#include "server/execution/program.h"
#include "server/observability/stage_clock.h"

namespace opserve::server {

// When to stop working for a caller. Thread-safe.
struct CallState {
  absl::Time deadline = absl::InfiniteFuture();
  std::atomic<bool> is_cancelled = false;

  // kCancelled or kDeadlineExceeded (reason "deadline_expired") if nobody waits any more.
  absl::Status Check() const;
};

struct ProgramResult {
  struct Output {
    uint32_t invocation;
    absl::string_view name;  // as in the catalogue
    catalog::TensorSpec spec;
    PinnedBuffer data;  // contiguous
  };
  std::vector<Output> outputs;  // in the order of Program::results
  int32_t device = 0;
  uint32_t lane = 0;
  uint64_t workspace_bytes = 0;
  uint64_t copied_to_device_bytes = 0;
  uint64_t copied_from_device_bytes = 0;
};

// Copies the payloads to the device, runs both stages of every invocation on the lane's stream,
// waits at most `execution_timeout` for them, and copies the results back. Both stages of an
// invocation run on the calling thread, which must be bound to the lane's device, because aclnn
// keeps state between them in the thread. Time is booked in `clock` from kQueue's end on.
//
// Whatever the outcome, the lane is idle afterwards (or its device failed) and all device memory is
// back in its pool. Errors: those of CallState::Check, AclCallStatus and StreamLane::Synchronize,
// with operator and invocation added.
absl::StatusOr<ProgramResult> RunProgram(const Program& program,
                                         absl::Span<const codec::Payload> payloads,
                                         const CallState& call, absl::Duration execution_timeout,
                                         StreamLane& lane, PinnedPool& pinned, StageClock& clock);

}  // namespace opserve::server
