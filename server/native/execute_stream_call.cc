#include "server/native/execute_stream_call.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/codec/header_arena.h"
#include "proto/codec/payload_message.h"
#include "proto/status/error.h"
#include "server/grpc/call_trace.h"
#include "server/grpc/split_message.h"
#include "server/grpc/status_conversion.h"
#include "server/native/received_request.h"
#include "server/request/request.h"

namespace opserve::server {
namespace {

// google.protobuf.Duration's own bound.
constexpr int64_t kMaxDurationSeconds = 315'576'000'000;

grpc::ByteBuffer BuildAnswer(uint64_t id, const RequestEnd& end, const AnswerForm& form) {
  v1::ExecuteStreamResponse header;
  header.set_id(id);
  codec::Slices payloads;
  if (end.status.ok()) {
    *header.mutable_response() = HeaderOf(*end.answer, form);
    payloads = PayloadsOf(*end.answer);
  } else {
    *header.mutable_error() = ToStatusDetails(end.status);
  }
  return codec::BuildPayloadMessage(header, payloads);
}

// Infinite for a request without timeout.
absl::Duration TimeoutOf(const v1::ExecuteStreamRequest& message) {
  const absl::Duration timeout =
      absl::Seconds(message.timeout().seconds()) + absl::Nanoseconds(message.timeout().nanos());
  return timeout == absl::ZeroDuration() ? absl::InfiniteDuration() : timeout;
}

absl::Status InvalidMessage(absl::string_view field, absl::string_view problem) {
  return InvalidCall("", field, problem, 0);
}

}  // namespace

void ExecuteStreamCall::Listen(NativeContext& context, grpc::ServerCompletionQueue* queue) {
  if (context.calls->accepts_more.load(std::memory_order_acquire)) {
    new ExecuteStreamCall(context, queue);
  }
}

ExecuteStreamCall::ExecuteStreamCall(NativeContext& context, grpc::ServerCompletionQueue* queue)
    : RequestStream(context, queue, Kind::kAnyOrder), native_(context) {
  static const int method = MethodNumber("opserve.v1.OperatorService.ExecuteStream");
  context.service->RequestStream(method, &rpc_, &stream_, queue_, &arrival_);
}

void ExecuteStreamCall::HandleMessage(const StageClock& clock) {
  codec::HeaderArena arena;
  auto& header = arena.Make<v1::ExecuteStreamRequest>();
  absl::StatusOr<codec::PayloadMessage> message =
      SplitMessage(message_, context_.calls->max_header_bytes, &header);
  // Without a header there is no id to answer to.
  if (!message.ok()) {
    EndInput(message.status(), clock);
    return;
  }
  CountInFlight();
  absl::Status status = CheckMessage(header);
  std::shared_ptr<CallState> call;
  if (status.ok()) {
    call = std::make_shared<CallState>(DeadlineAfter(TimeoutOf(header)));
    // Two requests of one id could not be told apart by their answers.
    if (!BeginRequest(header.id(), call)) {
      status = InvalidMessage(
          "id", absl::StrCat("request ", header.id(), " of this stream is still in progress"));
    }
  }
  if (!status.ok()) {
    const RequestEnd refusal = RefuseMessage(status, tenant_, clock, rpc_, message_.Length());
    grpc::ByteBuffer answer = BuildAnswer(header.id(), refusal, {});
    // BeginRequest has not begun it, so there is nothing to end.
    AnswerWith(&answer, refusal, header.id(), /*is_request_over=*/false);
    return;
  }
  ReceivedRequest request;
  request.Take(*std::move(message), header.request());
  RequestInput input = request.ToInput(tenant_, std::move(call), clock);
  input.request_bytes = message_.Length();
  input.trace = TraceOf(rpc_);
  input.connection = connection_;
  input.is_local = is_local_;
  Request::Start(native_, std::move(input),
                 [this, id = header.id(), form = request.form()](const RequestEnd& end) {
                   grpc::ByteBuffer answer = BuildAnswer(id, end, form);
                   AnswerWith(&answer, end, id, /*is_request_over=*/true);
                 });
}

absl::Status ExecuteStreamCall::CheckMessage(const v1::ExecuteStreamRequest& message) const {
  if (!message.has_request()) return InvalidMessage("request", "it is missing");
  if (!message.request().payloads().empty()) {
    return InvalidMessage("request", "payloads belong to the stream's message, not to its request");
  }
  const google::protobuf::Duration& timeout = message.timeout();
  if (timeout.seconds() < 0 || timeout.seconds() > kMaxDurationSeconds || timeout.nanos() < 0 ||
      timeout.nanos() > 999'999'999) {
    return InvalidMessage("timeout", "it is negative or not a valid Duration");
  }
  return absl::OkStatus();
}

}  // namespace opserve::server
