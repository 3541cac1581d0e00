#include "server/schedule/lanes/resident_steps.h"

#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "proto/status/status_macros.h"
#include "server/observability/tenant_slot.h"
#include "server/schedule/lanes/transfer_task.h"

namespace opserve::server {
namespace {

// For a lane, and for memory on the device.
constexpr absl::Duration kStepPatience = absl::Seconds(30);

}  // namespace

void ResidentSteps::Stop() {
  std::shared_ptr<CallState> step;
  {
    absl::MutexLock lock(&mutex_);
    is_stopping_ = true;
    step = step_;
  }
  // Without the lock, since the cancellation calls back.
  if (step != nullptr) step->Cancel();
}

bool ResidentSteps::is_stopping() const {
  absl::MutexLock lock(&mutex_);
  return is_stopping_;
}

bool ResidentSteps::ClaimAhead(Tensors tensors, HeldClaims* held) {
  return AwaitClaim(
      [&](TensorClaims::Ticket ticket, TensorClaims::OnEnd on_end) {
        return residents_.claims().ClaimAhead(ticket, tensors, std::move(on_end));
      },
      absl::InfiniteFuture(), held);
}

bool ResidentSteps::ClaimBehind(Tensors tensors, absl::Time deadline, HeldClaims* held) {
  std::vector<TensorClaims::Wish> wishes;
  for (const ResidentTensor* tensor : tensors) wishes.push_back({tensor, /*is_alone=*/true});
  return AwaitClaim(
      [&](TensorClaims::Ticket ticket, TensorClaims::OnEnd on_end) {
        return residents_.claims().Claim(ticket, wishes, absl::InfiniteFuture(), std::move(on_end));
      },
      deadline, held);
}

bool ResidentSteps::AwaitClaim(const Claim& claim, absl::Time deadline, HeldClaims* held) {
  TensorClaims& claims = residents_.claims();
  const TensorClaims::Ticket ticket = claims.NewTicket();
  {
    absl::MutexLock lock(&mutex_);
    // Before the claim, which may end at once.
    claim_end_.reset();
  }
  const auto on_end = [this](TensorClaims::Outcome outcome) {
    absl::MutexLock lock(&mutex_);
    claim_end_ = outcome;
  };
  // Granted at once: `on_end` is not called.
  bool is_granted = claim(ticket, on_end);
  if (!is_granted) {
    const auto is_over = [this] {
      mutex_.AssertReaderHeld();
      return claim_end_.has_value() || is_stopping_;
    };
    {
      absl::MutexLock lock(&mutex_);
      mutex_.AwaitWithDeadline(absl::Condition(&is_over), deadline);
      is_granted = claim_end_ == TensorClaims::Outcome::kGranted;
    }
    if (!is_granted) {
      if (claims.Withdraw(ticket)) return false;
      // It has ended just now: `on_end` is about to be called, and needs this object.
      const auto has_ended = [this] {
        mutex_.AssertReaderHeld();
        return claim_end_.has_value();
      };
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_ended));
      is_granted = claim_end_ == TensorClaims::Outcome::kGranted;
    }
  }
  if (is_granted) held->Add(ticket);
  return is_granted;
}

absl::Status ResidentSteps::Run(int32_t device, uint64_t pinned_bytes, bool uses_residents,
                                const Step& step) {
  struct End {
    absl::Status status;
    absl::Notification is_there;
  };
  const auto end = std::make_shared<End>();
  const auto call = std::make_shared<CallState>(absl::Now() + kStepPatience);
  {
    absl::MutexLock lock(&mutex_);
    // A step that began after Stop would not be cancelled.
    if (is_stopping_) return absl::CancelledError("the daemon ends");
    step_ = call;
  }
  std::unique_ptr<LaneTask> task = std::make_unique<TransferTask>(
      call, device,
      // On no tenant's account, as the daemon itself moves the tensors.
      TaskDemand{.tenant = kNobodysId, .pinned_bytes = PinnedPool::BlockBytes(pinned_bytes)},
      TransferTask::Kind{.uses_residents = uses_residents},
      [&step, &call](LaneContext& lane) { return step(lane, *call); },
      [end](const absl::Status& status) {
        end->status = status;
        end->is_there.Notify();
      });
  OPSERVE_RETURN_IF_ERROR(scheduler_.Submit(&task));
  // The call's deadline bounds the wait, for a lane and for memory.
  end->is_there.WaitForNotification();
  return end->status;
}

absl::StatusOr<DownloadChunk> ResidentSteps::Read(const ResidentTensor& tensor, uint64_t offset,
                                                  uint64_t bytes) {
  DownloadChunk chunk;
  OPSERVE_RETURN_IF_ERROR(Run(tensor.device, bytes, /*uses_residents=*/true,
                              [&](LaneContext& lane, const CallState&) -> absl::Status {
                                OPSERVE_ASSIGN_OR_RETURN(
                                    chunk, CopyFromDevice(*tensor.content, tensor.device_generation,
                                                          offset, bytes, lane));
                                return absl::OkStatus();
                              }));
  return chunk;
}

}  // namespace opserve::server
