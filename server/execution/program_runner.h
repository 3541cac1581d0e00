// Runs a checked program on one lane: the two-stage aclnn flow for each invocation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/codec/payload_message.h"
#include "server/execution/call_state.h"
#include "server/execution/lane_context.h"
#include "server/execution/program.h"
#include "server/observability/stage_clock.h"

namespace opserve::server {

struct ProgramResult {
  struct Output {
    uint32_t invocation;
    absl::string_view name;  // as in the catalogue
    TensorSpec spec;
    PinnedBuffer data;  // contiguous; of no use if it is in shared memory
    std::optional<v1::SharedMemoryRange> range = std::nullopt;  // of shared memory, where it is
  };
  std::vector<Output> outputs;  // in the order of Program::results
  int32_t device = 0;
  uint32_t lane = 0;
  uint64_t workspace_bytes = 0;  // of the invocations together, though they share it
  uint64_t device_memory_bytes = 0;
  DeviceMemoryPool::Outcome pool_outcome = DeviceMemoryPool::kHit;
  uint32_t plan_hits = 0;
  uint32_t plan_misses = 0;
  // Shared memory that was used in place is not copied.
  uint64_t copied_to_device_bytes = 0;
  uint64_t copied_from_device_bytes = 0;
  // Of these, from and to shared memory.
  uint64_t shared_to_device_bytes = 0;
  uint64_t shared_from_device_bytes = 0;
};

// Runs stage one of every invocation (or finds its plan), takes all device memory the program will
// need at once, copies the payloads, and the shared memory that the device cannot map, to it,
// queues every stage two on the lane's stream, waits for the device, and copies the results back.
// So memory is what a program may wait for before it starts, but never what it fails for after.
// Both stages of an invocation run on the calling thread, because aclnn keeps state between them in
// the thread. Time is booked in `clock` from kQueue's end on; waiting for memory is queueing, too.
//
// Whatever the outcome, the lane is idle afterwards (or its device not ready) and all device memory
// is back in its pool. Errors: those of CallState::Check, DeviceMemoryPool::Allocate,
// PinnedPool::Allocate, AclCallStatus and StreamLane::Synchronize, with operator and invocation
// added; kFailedPrecondition with reason "amplification" (too much workspace) or "tensor_lost" (the
// device was reset since a resident tensor was found).
absl::StatusOr<ProgramResult> RunProgram(const Program& program,
                                         absl::Span<const codec::Payload> payloads,
                                         const CallState& call, uint32_t tenant,
                                         LaneContext& context, StageClock& clock);

// The same in two steps, the first of which waits for nothing, so that threads may take it that
// have no time to. Used by one thread at a time; both stages of an invocation run in Start.
class PromptRun {
 public:
  // `lane` has a staging buffer. All outlive the run.
  PromptRun(const Program& program, absl::Span<const codec::Payload> payloads,
            const CallState& call, uint32_t tenant, LaneContext& lane, StageClock& clock);
  ~PromptRun();
  PromptRun(const PromptRun&) = delete;
  PromptRun& operator=(const PromptRun&) = delete;

  // Queues the whole program: payloads go through the staging buffer, so that copying them does not
  // wait for the device either, and results are copied back behind the last stage two. False, and
  // nothing was done: it needs more than is free in the pools, or than the staging buffer holds.
  bool Start();

  // After Start. Whether Finish need not wait.
  bool IsOver() const;

  // What RunProgram would give; leaves the lane as that does.
  absl::StatusOr<ProgramResult> Finish();

 private:
  class State;
  const std::unique_ptr<State> state_;
};

}  // namespace opserve::server
