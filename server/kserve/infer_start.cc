#include "server/kserve/infer_start.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/codec/payload_message.h"
#include "proto/codec/slices.h"
#include "server/grpc/call_trace.h"
#include "server/grpc/split_message.h"
#include "server/kserve/infer_request.h"
#include "server/kserve/known_inferences.h"
#include "server/request/request.h"
#include "server/schedule/lanes/visitor.h"

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
  codec::Slices slices;
  if (absl::Status status = codec::TakeSlices(input.message, &slices); !status.ok()) {
    return refuse(status);
  }
  absl::StatusOr<codec::PayloadMessage> message =
      // Tensors may be typed contents, which are part of the header.
      SplitMessage(std::move(slices), context.calls.calls->max_message_bytes, kRawInputsField);
  if (!message.ok()) return refuse(message.status());

  KnownInferences* const known_inferences = OfThisVisitor(context.known);
  std::optional<InferenceHeader> header;
  // Typed contents can make it long, and it is copied.
  if (known_inferences != nullptr && KnownInferences::MayKnow(message->header())) {
    header = SplitInferenceHeader(message->header());
  }
  std::shared_ptr<const KnownInferences::Known> known;
  if (header) known = known_inferences->Find(header->text, message->payloads());
  std::optional<KnownInferences::Candidate> candidate;
  std::vector<std::shared_ptr<SharedRegion>> regions;
  if (known != nullptr) {
    *echo = {.model_name = known->message.model_name(), .id = std::string(header->id)};
  } else {
    auto request = std::make_shared<KnownInferences::Known>();
    if (absl::Status status = ReadHeader(*message, &request->message); !status.ok()) {
      return refuse(status);
    }
    *echo = EchoOf(request->message);
    absl::StatusOr<InferTask> task = TranslateInferRequest(request->message,
                                                           {.operators = *context.calls.operators,
                                                            .regions = context.named_regions,
                                                            .tenant = input.tenant->id()},
                                                           &*message);
    if (!task.ok()) return refuse(task.status());
    request->task = *std::move(task);
    regions = std::move(request->task.regions);
    if (header) candidate.emplace(*known_inferences, std::move(header->text), request);
    known = std::move(request);
  }
  Request::Start(context.calls,
                 {.tenant = input.tenant,
                  .message = *std::move(message),
                  .asked = known->task.request,
                  .request_bytes = input.message.Length(),
                  .trace = TraceOf(*input.rpc),
                  .connection = input.connection,
                  .named_regions = std::move(regions),
                  .known = known->program,
                  .keeper = candidate ? &*candidate : nullptr,
                  .call = begin(known->task.timeout),
                  .clock = input.clock},
                 std::move(on_end));
}

}  // namespace opserve::server
