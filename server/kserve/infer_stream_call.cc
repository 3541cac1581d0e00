#include "server/kserve/infer_stream_call.h"

#include <memory>

#include "server/kserve/infer_answer.h"
#include "server/kserve/infer_start.h"

namespace opserve::server {

void InferStreamCall::Listen(InferenceContext& context, grpc::ServerCompletionQueue* queue) {
  if (context.calls.calls->accepts_more.load(std::memory_order_acquire)) {
    new InferStreamCall(context, queue);
  }
}

InferStreamCall::InferStreamCall(InferenceContext& context, grpc::ServerCompletionQueue* queue)
    : RequestStream(context.calls, queue, Kind::kOneByOne), inference_(context) {
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
      echo.get(),
      [&](absl::Duration timeout) {
        auto call = std::make_shared<CallState>(DeadlineAfter(timeout));
        // Messages are read only while fewer requests than the window are in progress.
        BeginRequest(number, call);
        return call;
      },
      [this, number, echo](const RequestEnd& end) {
        grpc::ByteBuffer message = end.status.ok() ? BuildInferStreamResponse(*echo, *end.answer)
                                                   : BuildInferStreamError(*echo, end.status);
        AnswerWith(&message, end, number, /*is_request_over=*/true);
      });
}

}  // namespace opserve::server
