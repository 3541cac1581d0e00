#include "server/rpc/execute_call.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "ops/catalog/error.h"
#include "ops/catalog/status_macros.h"
#include "proto/codec/payload_message.h"
#include "server/observability/log.h"
#include "server/rpc/execute_response.h"
#include "server/rpc/status_conversion.h"

namespace opserve::server {
namespace {

// More tensors than any operator's program could name.
constexpr size_t kMaxPayloads = 1024;

}  // namespace

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
  clock_ = StageClock();
  context_.in_flight.Add();
  events_to_come_ = 2;
  Listen(context_, queue_);
  if (absl::Status status = Start(); !status.ok()) {
    clock_.Book(Stage::kValidate);
    Answer(status, clock_, std::nullopt, grpc::ByteBuffer());
  }
}

absl::Status ExecuteCall::Start() {
  if (context_.is_draining.load(std::memory_order_acquire)) {
    absl::Status status = catalog::ErrorWithReason(absl::StatusCode::kUnavailable, "draining",
                                                   "the daemon is shutting down");
    v1::ErrorDetail detail = *catalog::GetErrorDetail(status);
    detail.set_retry_pushback_ms(1000);
    catalog::SetErrorDetail(detail, &status);
    return status;
  }
  state_->deadline = Deadline();
  OPSERVE_RETURN_IF_ERROR(state_->Check());

  auto message = codec::PayloadMessage::Split(request_, kMaxPayloads);
  if (!message.ok()) return catalog::InvalidCall("", "", message.status().message(), 0);
  v1::ExecuteRequest header;
  if (absl::Status status = message->ParseHeader(&header); !status.ok()) {
    return catalog::InvalidCall("", "", status.message(), 0);
  }
  clock_.Book(Stage::kRead);

  std::vector<uint64_t> payload_bytes;
  for (const codec::Payload& payload : message->payloads()) payload_bytes.push_back(payload.size);
  if (header.invocations_size() == 1) {
    const LoadedOperator* op = context_.operators->Find(header.invocations(0).operator_());
    if (op != nullptr) op_ = op->index;
  } else if (header.invocations_size() > 1) {
    op_ = RequestMetrics::kProgram;
  }
  OPSERVE_ASSIGN_OR_RETURN(
      Program program, BindProgram(header, payload_bytes, *context_.operators, context_.limits));
  OPSERVE_RETURN_IF_ERROR(CheckResponseFits(program, context_.max_response_bytes));
  want_receipt_ = header.want_receipt();
  clock_.Book(Stage::kValidate);

  auto request =
      std::make_unique<ExecutionRequest>(*std::move(message), std::move(program), state_, clock_);
  request->done = [this](ExecutionRequest& request, absl::StatusOr<ProgramResult> result) {
    AnswerWithResult(request, std::move(result));
  };
  return context_.scheduler->Submit(&request);
}

absl::Time ExecuteCall::Deadline() const {
  const absl::Time now = absl::Now();
  const absl::Time asked = absl::FromChrono(rpc_.deadline());
  const bool has_deadline = rpc_.deadline() != std::chrono::system_clock::time_point::max();
  return std::min(has_deadline ? asked : now + context_.default_deadline,
                  now + context_.max_deadline);
}

void ExecuteCall::AnswerWithResult(ExecutionRequest& request,
                                   absl::StatusOr<ProgramResult> result) {
  if (!result.ok()) {
    // A refusal is not the device's doing, but it is where the request had got to.
    Answer(result.status(), request.clock, std::nullopt, grpc::ByteBuffer());
    return;
  }
  context_.metrics->RecordCopies(result->copied_to_device_bytes, result->copied_from_device_bytes);
  const int32_t device = result->device;
  const grpc::ByteBuffer response =
      BuildExecuteResponse(*std::move(result), want_receipt_, &request.clock);
  Answer(absl::OkStatus(), request.clock, device, response);
}

void ExecuteCall::Answer(const absl::Status& status, const StageClock& clock,
                         std::optional<int32_t> device, const grpc::ByteBuffer& response) {
  context_.metrics->Record({.op = op_,
                            .device = device,
                            .status = status,
                            .clock = &clock,
                            .request_bytes = request_.Length(),
                            .response_bytes = response.Length()});
  if (status.code() == absl::StatusCode::kInternal) {
    LogError("request_failed", {{"error", std::string(status.message())}});
  }
  if (status.ok()) {
    writer_.Finish(response, grpc::Status::OK, &finished_);
  } else {
    writer_.FinishWithError(ToGrpcStatus(status, &rpc_), &finished_);
  }
}

void ExecuteCall::OnFinished(bool /*ok*/) { DestroyAfterLastEvent(); }

void ExecuteCall::OnDone(bool /*ok*/) {
  if (rpc_.IsCancelled()) state_->is_cancelled.store(true, std::memory_order_relaxed);
  DestroyAfterLastEvent();
}

void ExecuteCall::DestroyAfterLastEvent() {
  if (--events_to_come_ > 0) return;
  context_.in_flight.Remove();
  delete this;
}

}  // namespace opserve::server
