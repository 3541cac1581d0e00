#include "server/rpc/execute_call.h"

#include <utility>

#include "proto/codec/header_arena.h"
#include "proto/codec/payload_message.h"
#include "server/rpc/execution_start.h"
#include "server/rpc/status_conversion.h"

namespace opserve::server {

void ExecuteCall::Listen(ExecuteContext& context, grpc::ServerCompletionQueue* queue) {
  if (context.calls->accepts_more.load(std::memory_order_acquire)) new ExecuteCall(context, queue);
}

ExecuteCall::ExecuteCall(ExecuteContext& context, grpc::ServerCompletionQueue* queue)
    : context_(context), queue_(queue) {
  context_.calls->alive.Add();
  rpc_.AsyncNotifyWhenDone(&done_);
  context_.service->RequestExecute(&rpc_, &request_, &writer_, queue_, queue_, &arrival_);
}

ExecuteCall::~ExecuteCall() { context_.calls->alive.Remove(); }

void ExecuteCall::OnArrival(bool ok) {
  if (!ok) {  // the server shuts down; OnDone does not come for a call that never was
    delete this;
    return;
  }
  const StageClock clock;
  context_.in_flight.Add();
  events_to_come_ = 2;
  Listen(context_, queue_);
  state_ = std::make_shared<CallState>(RequestDeadline(context_, rpc_.deadline()));
  const absl::StatusOr<Tenant*> tenant = context_.authenticator->TenantOf(rpc_);
  if (!tenant.ok()) {
    Answer(RefuseMessage(tenant.status(), nullptr, clock, request_));
    return;
  }
  codec::HeaderArena arena;
  auto& header = arena.Make<v1::ExecuteRequest>();
  absl::StatusOr<codec::PayloadMessage> message = SplitRequest(request_, &header);
  if (!message.ok()) {
    Answer(RefuseMessage(message.status(), *tenant, clock, request_));
    return;
  }
  StartExecution(context_,
                 {.tenant = *tenant,
                  .message = *std::move(message),
                  .header = header,
                  .request_bytes = request_.Length(),
                  .rpc = &rpc_,
                  .call = state_,
                  .clock = clock},
                 [this](const ExecutionEnd& end) { Answer(end); });
}

void ExecuteCall::Answer(const ExecutionEnd& end) {
  if (!end.status.ok()) {
    RecordExecution(context_, end, /*response_bytes=*/0);
    write_.Begin();
    writer_.FinishWithError(ToGrpcStatus(end.status, &rpc_), &finished_);
    return;
  }
  const grpc::ByteBuffer response =
      codec::BuildPayloadMessage(end.answer->header, end.answer->payloads);
  RecordExecution(context_, end, response.Length());
  write_.Begin();
  writer_.Finish(response, grpc::Status::OK, &finished_);
}

void ExecuteCall::OnFinished(bool /*ok*/) {
  write_.End();
  DestroyAfterLastEvent();
}

void ExecuteCall::OnDone(bool /*ok*/) {
  if (rpc_.IsCancelled()) state_->Cancel();
  DestroyAfterLastEvent();
}

void ExecuteCall::DestroyAfterLastEvent() {
  if (--events_to_come_ > 0) return;
  context_.in_flight.Remove();
  delete this;
}

}  // namespace opserve::server
