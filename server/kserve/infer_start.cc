#include "server/kserve/infer_start.h"

#include <utility>

#include "proto/codec/header_arena.h"
#include "proto/codec/payload_message.h"
#include "server/grpc/call_trace.h"
#include "server/grpc/split_message.h"
#include "server/kserve/infer_request.h"
#include "server/request/request.h"

namespace opserve::server {

void StartInference(InferenceContext& context, const InferenceInput& input, InferEcho* echo,
                    absl::FunctionRef<std::shared_ptr<CallState>(absl::Duration timeout)> begin,
                    OnRequestEnd on_end) {
  const auto refuse = [&](const absl::Status& status) {
    // The caller's state of a request exists in any case, as its end is reported to it.
    begin(absl::InfiniteDuration());
    RequestEnd end =
        RefuseMessage(status, input.tenant, input.clock, *input.rpc, input.message.Length());
    // A refusal counts for its operator where the name is known.
    const LoadedOperator* op = context.calls.operators->Find(echo->model_name);
    if (op != nullptr) end.op = op->index;
    on_end(end);
  };
  codec::HeaderArena arena;
  auto& request = arena.Make<inference::ModelInferRequest>();
  absl::StatusOr<codec::PayloadMessage> message =
      // Tensors may be typed contents, which are part of the header.
      SplitMessage(input.message, context.calls.calls->max_message_bytes, &request,
                   kRawInputsField);
  if (!message.ok()) return refuse(message.status());
  *echo = EchoOf(request);
  absl::StatusOr<InferTask> task = TranslateInferRequest(request,
                                                         {.operators = *context.calls.operators,
                                                          .regions = context.named_regions,
                                                          .tenant = input.tenant->id()},
                                                         &*message);
  if (!task.ok()) return refuse(task.status());
  Request::Start(context.calls,
                 {.tenant = input.tenant,
                  .message = *std::move(message),
                  .asked = task->request,
                  .request_bytes = input.message.Length(),
                  .trace = TraceOf(*input.rpc),
                  .connection = input.connection,
                  .named_regions = std::move(task->regions),
                  .call = begin(task->timeout),
                  .clock = input.clock},
                 std::move(on_end));
}

}  // namespace opserve::server
