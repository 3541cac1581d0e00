#include "server/grpc/single_call.h"

#include <string>

#include "server/grpc/call_trace.h"
#include "server/grpc/connection_key.h"
#include "server/grpc/message_bytes.h"
#include "server/grpc/status_conversion.h"

namespace opserve::server {

SingleCall::SingleCall(CallContext& context, grpc::ServerCompletionQueue* queue)
    : context_(context), queue_(queue) {
  context_.calls->alive.Add();
  // Before the call is requested, as gRPC demands.
  rpc_.AsyncNotifyWhenDone(&done_);
}

SingleCall::~SingleCall() { context_.calls->alive.Remove(); }

void SingleCall::OnArrival(bool ok) {
  if (!ok) {  // the server shuts down; OnDone does not come for a call that never was
    delete this;
    return;
  }
  const StageClock clock;
  context_.calls->open.Add();
  // Counted at once, so that a drain waits for the call.
  is_in_flight_ = context_.CountUnlessDraining();
  events_to_come_ = 2;
  // The next call is awaited before this one is served.
  ListenForNext();
  const std::string peer = rpc_.peer();
  const absl::StatusOr<Tenant*> tenant = context_.authenticator->TenantOf(rpc_, peer);
  if (!tenant.ok()) {
    Answer(RefuseMessage(tenant.status(), nullptr, clock, rpc_, request_.Length()));
    return;
  }
  const absl::Status status = CheckMessageBytes(request_, context_.calls->max_message_bytes);
  if (status.ok()) {
    connection_ = ConnectionKey(peer, (*tenant)->id());
    is_local_ = IsLocal(peer);
    Start(*tenant, clock);
  } else {
    Answer(RefuseMessage(status, *tenant, clock, rpc_, request_.Length()));
  }
}

std::shared_ptr<CallState> SingleCall::BeginCall(absl::Duration timeout) {
  state_ = std::make_shared<CallState>(context_.RequestDeadline(rpc_.deadline(), timeout));
  return state_;
}

void SingleCall::Answer(const RequestEnd& end) {
  // Recorded before the answer leaves, so that a client that has it sees it counted.
  if (!end.status.ok()) {
    Record(context_, end, /*response_bytes=*/0);
    const grpc::Status status = ToGrpcStatus(ErrorFor(end.status), &rpc_);
    write_.Begin();
    writer_.FinishWithError(status, &finished_);
    return;
  }
  grpc::ByteBuffer response = BuildAnswer(*end.answer);
  Record(context_, end, response.Length());
  write_.Begin();
  writer_.Finish(GivenMessage(&response), grpc::Status::OK, &finished_);
}

void SingleCall::OnFinished(bool /*ok*/) {
  write_.End();
  DestroyAfterLastEvent();
}

void SingleCall::OnDone(bool /*ok*/) {
  // This event comes for every call. Only a client that left has something to cancel, and only if a
  // run was begun.
  if (rpc_.IsCancelled() && state_ != nullptr) state_->Cancel();
  DestroyAfterLastEvent();
}

void SingleCall::DestroyAfterLastEvent() {
  if (--events_to_come_ > 0) return;
  if (is_in_flight_) context_.in_flight.Remove();
  context_.calls->open.Remove();
  delete this;
}

}  // namespace opserve::server
