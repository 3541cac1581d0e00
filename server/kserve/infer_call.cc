#include "server/kserve/infer_call.h"

#include "server/kserve/infer_start.h"

namespace opserve::server {

void InferCall::Listen(InferenceContext& context, grpc::ServerCompletionQueue* queue) {
  if (context.calls.calls->accepts_more.load(std::memory_order_acquire)) {
    new InferCall(context, queue);
  }
}

InferCall::InferCall(InferenceContext& context, grpc::ServerCompletionQueue* queue)
    : SingleCall(context.calls, queue), inference_(context) {
  static const int method = MethodNumber("inference.GRPCInferenceService.ModelInfer");
  inference_.service.RequestUnary(method, &rpc_, &request_, &writer_, queue_, &arrival_);
}

void InferCall::Start(Tenant* tenant, const StageClock& clock) {
  StartInference(
      inference_,
      {.tenant = tenant,
       .message = request_,
       .rpc = &rpc_,
       .connection = connection_,
       .clock = clock},
      &echo_, [this](absl::Duration timeout) { return BeginCall(timeout); },
      // The last use of this call by a device's thread.
      [this](const RequestEnd& end) { Answer(end); });
}

grpc::ByteBuffer InferCall::BuildAnswer(const RequestAnswer& answer) const {
  return BuildInferResponse(echo_, answer);
}

absl::Status InferCall::ErrorFor(const absl::Status& status) const {
  return InferError(echo_.id, status);
}

}  // namespace opserve::server
