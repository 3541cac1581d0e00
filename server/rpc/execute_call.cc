#include "server/rpc/execute_call.h"

#include <utility>

#include "proto/codec/header_arena.h"
#include "proto/codec/payload_message.h"
#include "server/rpc/execution_start.h"

namespace opserve::server {

void ExecuteCall::Listen(ExecuteContext& context, grpc::ServerCompletionQueue* queue) {
  if (context.calls->accepts_more.load(std::memory_order_acquire)) new ExecuteCall(context, queue);
}

ExecuteCall::ExecuteCall(ExecuteContext& context, grpc::ServerCompletionQueue* queue)
    : ExecutionCall(context, queue) {
  static const int method = MethodNumber("opserve.v1.OperatorService.Execute");
  context_.service->RequestUnary(method, &rpc_, &request_, &writer_, queue_, &arrival_);
}

void ExecuteCall::Start(Tenant* tenant, const StageClock& clock) {
  // The header lives until the request is bound; its payloads stay in gRPC's slices.
  codec::HeaderArena arena;
  codec::Slices message;
  const absl::Status taken = codec::TakeSlices(request_, &message);
  absl::StatusOr<ReceivedRequest> request = taken.ok()
                                                ? ReadRequest(context_, std::move(message), &arena)
                                                : absl::StatusOr<ReceivedRequest>(taken);
  if (!request.ok()) {
    Answer(RefuseMessage(request.status(), tenant, clock, rpc_, request_.Length()));
    return;
  }
  StartExecution(context_,
                 {.tenant = tenant,
                  .message = std::move(request->message),
                  .header = *request->header,
                  .request_bytes = request_.Length(),
                  .rpc = &rpc_,
                  .connection = connection_,
                  .known = std::move(request->known),
                  .programs = request->programs,
                  .call = BeginCall(),
                  .clock = clock},
                 // Called once, possibly on a thread of a device.
                 [this](const ExecutionEnd& end) { Answer(end); });
}

grpc::ByteBuffer ExecuteCall::BuildAnswer(const ExecuteAnswer& answer) const {
  // A known program has its header serialised already.
  return answer.header_bytes.empty()
             ? codec::BuildPayloadMessage(*answer.header, answer.payloads)
             : codec::BuildPayloadMessage(answer.header_bytes, answer.payloads);
}

}  // namespace opserve::server
