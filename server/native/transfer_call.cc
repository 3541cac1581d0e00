#include "server/native/transfer_call.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/grpc/connection_key.h"
#include "server/grpc/status_conversion.h"
#include "server/observability/line_limiter.h"
#include "server/observability/log.h"
#include "server/request/refusal.h"

namespace opserve::server {
namespace {

absl::Time Deadline(const grpc::ServerContext& rpc, absl::Duration longest) {
  const absl::Time latest = absl::Now() + longest;
  const bool has_deadline = rpc.deadline() != std::chrono::system_clock::time_point::max();
  return has_deadline ? std::min(absl::FromChrono(rpc.deadline()), latest) : latest;
}

}  // namespace

TransferCall::TransferCall(TensorContext& context, grpc::ServerCompletionQueue* queue)
    : context_(context), queue_(queue) {
  context_.calls->alive.Add();
  rpc_.AsyncNotifyWhenDone(&done_event_);
}

TransferCall::~TransferCall() { context_.calls->alive.Remove(); }

absl::Status TransferCall::Begin() {
  Arrive();
  OPSERVE_ASSIGN_OR_RETURN(const Tenant* tenant,
                           context_.authenticator->TenantOf(rpc_, rpc_.peer()));
  tenant_ = tenant->id();
  return CheckTaken();
}

void TransferCall::Arrive() {
  context_.calls->open.Add();
  is_in_flight_ = context_.in_flight->AddUnless(*context_.is_draining);
  state_ = std::make_shared<CallState>(Deadline(rpc_, context_.max_deadline));
  ExpectEvent();  // HandleDone, which gRPC owes every call that arrived
  ExpectEvent();
  deadline_alarm_.Set(queue_, absl::ToChronoTime(state_->deadline()), &deadline_event_);
}

absl::Status TransferCall::CheckTaken() const {
  if (!is_in_flight_) return DrainingError(*context_.moved_to);
  return state_->Check();
}

void TransferCall::EventEnded() {
  if (--events_to_come_ > 0) return;
  OnEnd();
  if (is_in_flight_) context_.in_flight->Remove();
  context_.calls->open.Remove();
  delete this;
}

absl::Status TransferCall::Submit(int32_t device, uint64_t result_bytes, bool is_last,
                                  TransferTask::Step step) {
  std::unique_ptr<LaneTask> task = std::make_unique<TransferTask>(
      state_, device,
      TaskDemand{.tenant = tenant_,
                 .pinned_bytes = PinnedPool::BlockBytes(result_bytes),
                 .connection = result_bytes > 0 ? ConnectionKey(rpc_.peer(), tenant_) : 0},
      TransferTask::Kind{.uses_residents = result_bytes > 0, .ends_request = is_last},
      std::move(step), [this](const absl::Status& status) { step_.End(status); });
  step_.Begin();
  absl::Status status = context_.scheduler->Submit(&task);
  if (!status.ok()) step_.TakeBack();
  return status;
}

bool TransferCall::BeginReading(absl::Span<const TensorClaims::Wish> wishes) {
  TensorClaims& claims = context_.residents->claims();
  claim_ = claims.NewTicket();
  step_.Begin();
  const auto leave = [this, &claims] {
    if (claims.Withdraw(claim_)) step_.End(state_->Check());
  };
  const bool can_be_cancelled = state_->OnCancel(leave);
  // The call's own alarm sees to its deadline.
  const bool is_granted =
      claims.Claim(claim_, wishes, absl::InfiniteFuture(),
                   [this](TensorClaims::Outcome) { step_.End(absl::OkStatus()); });
  if (is_granted) {
    step_.TakeBack();
  } else if (!can_be_cancelled) {
    leave();
  }
  return is_granted;
}

void TransferCall::EndReading() { context_.residents->claims().Release(claim_); }

grpc::Status TransferCall::End(const absl::Status& status, absl::string_view method) {
  deadline_alarm_.Cancel();
  if (absl::IsInternal(status)) {
    static LineLimiter lines(LimitedEvent::kTransferFailed);
    if (lines.Admit(LogSeverity::kError, absl::Now())) {
      lines.Write(LogSeverity::kError, "transfer_failed",
                  {{"method", std::string(method)}, {"error", std::string(status.message())}});
    }
  }
  context_.metrics->RecordPushback(status);
  return ToGrpcStatus(status, &rpc_);
}

void TransferCall::HandleDeadline(bool ok) {
  if (ok) {  // not cancelled
    OnDeadline(MakeError(Reason::kDeadlineExpired, "the deadline passed during the transfer"));
  }
  EventEnded();
}

void TransferCall::HandleDone(bool /*ok*/) {
  if (rpc_.IsCancelled()) CancelStep();
  EventEnded();
}

}  // namespace opserve::server
