// Runs a checked program on one lane: the two-stage aclnn flow for each invocation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/codec/payloads.h"
#include "server/observability/stage_clock.h"
#include "server/program/memory_plan.h"
#include "server/program/program.h"
#include "server/run/call_state.h"
#include "server/run/captured_runs.h"
#include "server/run/held_results.h"
#include "server/run/lane_context.h"
#include "server/run/plan_cache.h"
#include "server/run/window_transfer.h"

namespace opserve::server {

struct ProgramResult {
  struct Output {
    OutputRef source;
    PinnedBuffer data;                                // contiguous; empty if it is elsewhere
    std::optional<MemoryRange> range = std::nullopt;  // of shared memory, where it is
    std::optional<uint32_t> kept = std::nullopt;      // position in Program::kept, if it stays
  };
  std::vector<Output> outputs;  // in the order of Program::results
  // The results that travel, if the run holds them (LaneContext::holds_results); else null.
  std::unique_ptr<HeldResults> held = nullptr;
  int32_t device = 0;
  uint32_t lane = 0;
  uint64_t workspace_bytes = 0;  // of the invocations together, though they share it
  uint64_t device_memory_bytes = 0;
  DeviceMemoryPool::Outcome pool_outcome = DeviceMemoryPool::kHit;
  uint32_t plan_hits = 0;  // replayed invocations included
  uint32_t plan_misses = 0;
  bool is_replayed = false;        // a captured run was replayed, as one launch
  uint32_t contiguous_copies = 0;  // of views, on the device (contiguous_copies.h)
  // Shared memory that was used in place is not copied, held results are not copied yet.
  uint64_t copied_to_device_bytes = 0;
  uint64_t copied_from_device_bytes = 0;
  // Of these, from and to shared memory.
  uint64_t shared_to_device_bytes = 0;
  uint64_t shared_from_device_bytes = 0;
};

// One run of a program, in two halves: Queue has the device do it all, Finish waits for that and
// takes the results. A thread that has other things to do may take the first half and leave the
// second to another one. Used by one thread at a time, which is bound to the device.
class ProgramRun {
 public:
  // All outlive the run. Time is booked in `clock` from the end of kQueue on; waiting for memory is
  // queueing, too. `tenant`: the owner of the request, for scrubbing.
  ProgramRun(const ProgramCall& bound, absl::Span<const codec::Payload> payloads,
             const CallState& call, uint32_t tenant, LaneContext& context, StageClock& clock);
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;
  ~ProgramRun();

  // Runs stage one of every invocation (or finds its plan), takes all device memory the program
  // will need at once, queues copies of the payloads, and of the shared memory that the device
  // cannot map, and every stage two on the lane's stream. So a program may wait for memory before
  // it starts, but never fails for it after that. Both stages of an invocation run on the calling
  // thread, because aclnn keeps state between them in the thread. Where LaneContext::captured has a
  // captured run that fits the call, that is replayed instead, in its own memory; or the run is
  // captured, if it is due. A capture or replay that cannot be had does not fail the run: it
  // launches.
  //
  // False, and nothing has happened: it would have to wait for memory or copies and must not
  // (LaneContext::may_wait). Errors are told by Finish, which follows if and only if this is true.
  bool Queue();

  // Whether Finish would not wait for the device.
  bool IsOver() const { return context_.lane.IsIdle(); }

  // Waits for the device and copies the results back. Whatever the outcome, the lane is idle
  // afterwards (or its device not ready) and all device memory is back in its pool, but for that of
  // outputs that stay, which ProgramCall::kept has, and of results that the run holds. A resident
  // tensor whose memory was worked in is broken if the run fails after that.
  //
  // Errors: those of CallState::Check, DeviceMemoryPool::Allocate, PinnedPool::Allocate,
  // AclCallStatus and StreamLane::Synchronize, with operator and invocation added;
  // kFailedPrecondition with reason "amplification" (too much workspace), "tensor_lost" (the device
  // was reset since a resident tensor was found, or another run broke it) or "tensor_version".
  absl::StatusOr<ProgramResult> Finish();

  // When the device was idle in between, by position in ProgramCall::slice_ends; fewer if the run
  // failed, none if it was replayed.
  const std::vector<absl::Time>& slice_waits() const { return slice_waits_; }

 private:
  // Of Queue, in this order.
  absl::Status CheckResidents() const;  // and payloads that lie apart, and kept tensors
  absl::Status FindPlans();
  // Those of copies; raises the workspaces of the invocations that they are made for.
  absl::Status FindCopyPlans();
  // False: the memory is not free now, and the thread must not wait for it.
  absl::StatusOr<bool> TakeMemory();
  absl::StatusOr<bool> TakePinned(uint64_t bytes, PinnedBuffer* to);
  absl::StatusOr<bool> TakeDeviceMemory();  // to memory_
  // Takes the memory of outputs that stay; waits for it.
  absl::Status TakeKeptMemory();
  void CountPlans();
  absl::Status CopyInputs();
  absl::Status Start();

  // A captured run that fits the call, with its memory and plans; null: none.
  void TakeCapturedRun();
  // Whether the run is to be captured.
  bool IsCaptureDue() const;
  // Makes room for a capture of the run, whose plans are known, if there is some.
  void BeginCapture();
  // Queues stage two of every invocation as one launch. False: that cannot be, and nothing is
  // queued. Errors: those of CallState::Check.
  absl::StatusOr<bool> Replay();
  absl::Status Capture();
  absl::Status CaptureOn(aclrtStream stream);
  // Makes the run one that launches, after Replay was false.
  absl::Status PrepareToLaunch();
  // Acquires the plan of `call`, which is made in or for the invocation `index`, again: as
  // (*leases)[position], unless what is there can be launched.
  absl::Status Renew(const BoundInvocation& call, uint32_t index, size_t position,
                     absl::InlinedVector<PlanCache::Lease, 1>* leases);
  // Keeps the captured run for others, or ends it; or returns one that was not used.
  void GiveCapturedRunBack(bool is_idle);
  void ReturnCapturedRun();
  absl::Status LaunchAll(aclrtStream stream);

  // Of Finish.
  absl::Status AwaitStream();
  absl::Status CopyResults();
  // Keeps the run's memory with the results in it.
  void HoldResults();
  // Copies outputs that stay from the run's memory to their own.
  absl::Status StoreKept();
  // Of a run that failed.
  void GiveUpKept();
  // Reports a device that broke, and the state of the stream.
  void Conclude();

  // Puts operator and invocation in front of an error from below, which does not know them.
  absl::Status InInvocation(uint32_t index, const absl::Status& status) const;
  absl::Status CheckWorkspace(uint64_t bytes) const;
  // Plans memory anew if the program's own plan does not hold on this device.
  void PlanPieces();
  const MemoryPlan& plan() const {
    return own_plan_ != nullptr ? *own_plan_ : program_.memory_plan;
  }
  // The bytes of device memory from the first payload to the end of the last one.
  struct Extent {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t size() const { return end - begin; }
  };
  Extent PayloadExtent() const;
  bool FitsStaging(const Extent& payloads) const {
    return payloads.size() <= context_.staging.size();
  }
  absl::Status CopyPayloadsFromStaging(const Extent& extent);
  absl::Status CopyPayloadsDirectly();
  absl::Status CopyPayloadsApart();
  absl::Status CopyLiterals();
  absl::Status CopyToDevice(absl::string_view bytes, void* to);
  absl::Status Launch(uint32_t index, aclrtStream stream);
  // The copies that an invocation reads.
  absl::Status LaunchCopies(uint32_t index, aclrtStream stream);
  // Waits for the launched part, and notes when it ended, so that a long program is watched, and
  // can be ended, in slices.
  absl::Status AwaitSlice();
  void* At(uint64_t offset) const {
    return memory_.data() == nullptr ? nullptr : static_cast<char*>(memory_.data()) + offset;
  }
  void* MemoryOfWindow(size_t window) const;  // of one that is copied
  void* AddressOf(const BoundInput& input) const;
  void* OutputAddress(const OutputRef& output) const;
  // Whether the output that stays is where the content was that it replaces.
  bool HasOldMemory(size_t kept) const;
  bool IsWorkedIn(size_t kept) const;
  // Whether the output that stays is computed in the run's memory.
  bool IsStaged(size_t kept) const { return stages_kept_ && !program_.kept[kept].is_in_place; }

  const ProgramCall& bound_;
  const Program& program_;
  const absl::Span<const codec::Payload> payloads_;
  const CallState& call_;
  const uint32_t tenant_;
  bool is_on_stream_ = false;  // something of the run may be
  bool is_launched_ = false;   // some stage two may be
  bool stages_kept_ = false;   // as a captured run does
  bool is_storing_ = false;    // some of them may be copied
  LaneContext& context_;
  std::vector<absl::Time> slice_waits_;
  StageClock& clock_;
  const AclLibrary& acl_;
  const aclrtStream stream_;  // of the lane, which may have another one in the end
  absl::Status status_;
  absl::InlinedVector<PlanCache::Lease, 1> leases_;       // by invocation
  absl::InlinedVector<PlanCache::Lease, 1> copy_leases_;  // by position in Program::copies
  absl::InlinedVector<uint64_t, 1> workspace_bytes_;      // by invocation, its copies' included
  std::vector<WindowTransfer> windows_;                   // by window
  std::shared_ptr<const MemoryPlan> own_plan_;            // null: the program's holds
  DeviceBuffer memory_;
  // To be replayed or, without a graph, captured by this run. Its memory is in memory_.
  std::unique_ptr<CapturedRun> captured_;
  ProgramResult result_;
};

// Both halves on the calling thread.
absl::StatusOr<ProgramResult> RunProgram(const ProgramCall& bound,
                                         absl::Span<const codec::Payload> payloads,
                                         const CallState& call, uint32_t tenant,
                                         LaneContext& context, StageClock& clock);

}  // namespace opserve::server
