#include "server/native/execute_call.h"

#include <utility>

#include "proto/codec/header_arena.h"
#include "proto/status/status_macros.h"
#include "server/grpc/call_trace.h"
#include "server/native/received_request.h"
#include "server/request/request.h"

namespace opserve::server {

void ExecuteCall::Listen(NativeContext& context, grpc::ServerCompletionQueue* queue) {
  if (context.calls->accepts_more.load(std::memory_order_acquire)) new ExecuteCall(context, queue);
}

ExecuteCall::ExecuteCall(NativeContext& context, grpc::ServerCompletionQueue* queue)
    : SingleCall(context, queue), native_(context) {
  static const int method = MethodNumber("opserve.v1.OperatorService.Execute");
  context.service->RequestUnary(method, &rpc_, &request_, &writer_, queue_, &arrival_);
}

void ExecuteCall::Start(Tenant* tenant, const StageClock& clock) {
  // The header lives until the request is handed over; its payloads stay in gRPC's slices.
  codec::HeaderArena arena;
  ReceivedRequest request;
  codec::Slices message;
  absl::Status status = codec::TakeSlices(request_, &message);
  if (status.ok()) status = request.Read(native_, std::move(message), &arena);
  if (!status.ok()) {
    Answer(RefuseMessage(status, tenant, clock, rpc_, request_.Length()));
    return;
  }
  form_ = request.form();
  RequestInput input = request.ToInput(tenant, BeginCall(), clock);
  input.request_bytes = request_.Length();
  input.trace = TraceOf(rpc_);
  input.connection = connection_;
  input.is_local = is_local_;
  // Its end may come on a thread of a device.
  Request::Start(native_, std::move(input), [this](const RequestEnd& end) { Answer(end); });
}

grpc::ByteBuffer ExecuteCall::BuildAnswer(const RequestAnswer& answer) const {
  return MessageOf(answer, form_);
}

}  // namespace opserve::server
