#include "server/rpc/inference/infer_stream_call.h"

#include <memory>

#include "server/rpc/inference/infer_answer.h"
#include "server/rpc/inference/infer_start.h"

namespace opserve::server {

void InferStreamCall::Listen(InferenceContext& context, grpc::ServerCompletionQueue* queue) {
  if (context.execute.calls->accepts_more.load(std::memory_order_acquire)) {
    new InferStreamCall(context, queue);
  }
}

InferStreamCall::InferStreamCall(InferenceContext& context, grpc::ServerCompletionQueue* queue)
    : ExecutionStream(context.execute, queue, Kind::kOneByOne), inference_(context) {
  static const int method = MethodNumber("inference.GRPCInferenceService.ModelStreamInfer");
  inference_.service.RequestStream(method, &rpc_, &stream_, queue_, &arrival_);
}

void InferStreamCall::HandleMessage(const StageClock& clock) {
  CountInFlight();
  // Requests of this protocol may share an id, so the stream numbers them.
  const uint64_t number = requests_++;
  const auto echo = std::make_shared<InferEcho>();
  StartInference(
      inference_,
      {.tenant = tenant_,
       .message = message_,
       .rpc = &rpc_,
       .connection = connection_,
       .clock = clock},
      echo.get(), [&](absl::Duration timeout) { return BeginRequest(number, timeout); },
      [this, number, echo](const ExecutionEnd& end) {
        grpc::ByteBuffer message = end.status.ok() ? BuildInferStreamResponse(*echo, *end.answer)
                                                   : BuildInferStreamError(*echo, end.status);
        AnswerWith(&message, end, number, /*is_request_over=*/true);
      });
}

}  // namespace opserve::server
