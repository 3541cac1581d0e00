// The steps by which the daemon itself takes resident tensors elsewhere: claims of them, and copies
// on lanes of their devices.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/run/call_state.h"
#include "server/run/lane_context.h"
#include "server/run/resident_tensors.h"
#include "server/run/tensor_transfer.h"
#include "server/schedule/lanes/scheduler.h"

namespace opserve::server {

// Claims that end with this object. Used by one thread.
class HeldClaims {
 public:
  explicit HeldClaims(TensorClaims& claims) : claims_(claims) {}
  ~HeldClaims() {
    for (const TensorClaims::Ticket ticket : tickets_) claims_.Release(ticket);
  }
  HeldClaims(const HeldClaims&) = delete;
  HeldClaims& operator=(const HeldClaims&) = delete;

  void Add(TensorClaims::Ticket ticket) { tickets_.push_back(ticket); }

 private:
  TensorClaims& claims_;
  std::vector<TensorClaims::Ticket> tickets_;
};

// Used by one thread, but for Stop and is_stopping.
class ResidentSteps {
 public:
  using Step = std::function<absl::Status(LaneContext& lane, const CallState& call)>;
  using Tensors = absl::Span<const ResidentTensor* const>;

  // Both outlive the steps.
  ResidentSteps(Scheduler& scheduler, ResidentTensors& residents)
      : scheduler_(scheduler), residents_(residents) {}
  ResidentSteps(const ResidentSteps&) = delete;
  ResidentSteps& operator=(const ResidentSteps&) = delete;

  // Ends the present wait; each later one ends at once. Thread-safe.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_stopping() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Claims the tensors for the caller alone and adds the claim to *held: ahead of requests that
  // wait for them (TensorClaims::ClaimAhead), or behind them, until `deadline`. False: it was
  // stopped or its time is up, and nothing is claimed.
  bool ClaimAhead(Tensors tensors, HeldClaims* held) ABSL_LOCKS_EXCLUDED(mutex_);
  bool ClaimBehind(Tensors tensors, absl::Time deadline, HeldClaims* held)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Runs a step on a lane of the device, and waits for its end, some 30 seconds at most.
  // `pinned_bytes`: page-locked memory for its results. kCancelled: stopped. Else the step's error,
  // or Scheduler::Submit's.
  absl::Status Run(int32_t device, uint64_t pinned_bytes, bool uses_residents, const Step& step)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Copies `bytes` bytes (not 0) from `offset` on of a tensor that the caller has claimed. Errors:
  // Run's, CopyFromDevice's.
  absl::StatusOr<DownloadChunk> Read(const ResidentTensor& tensor, uint64_t offset, uint64_t bytes);

 private:
  using Claim = std::function<bool(TensorClaims::Ticket ticket, TensorClaims::OnEnd on_end)>;
  bool AwaitClaim(const Claim& claim, absl::Time deadline, HeldClaims* held)
      ABSL_LOCKS_EXCLUDED(mutex_);

  Scheduler& scheduler_;
  ResidentTensors& residents_;
  mutable absl::Mutex mutex_;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Of the claim that is waited for; none: it has not ended.
  std::optional<TensorClaims::Outcome> claim_end_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<CallState> step_ ABSL_GUARDED_BY(mutex_);  // the last one
};

}  // namespace opserve::server
