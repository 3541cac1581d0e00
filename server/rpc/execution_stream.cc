#include "server/rpc/execute_stream_call.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/catalog/error.h"
#include "proto/codec/header_arena.h"
#include "proto/codec/payload_message.h"
#include "server/rpc/execution_start.h"
#include "server/rpc/status_conversion.h"

namespace opserve::server {
namespace {

// google.protobuf.Duration's own bound.
constexpr int64_t kMaxDurationSeconds = 315'576'000'000;

grpc::ByteBuffer BuildMessage(uint64_t id, const ExecutionEnd& end) {
  v1::ExecuteStreamResponse header;
  header.set_id(id);
  if (!end.status.ok()) {
    *header.mutable_error() = ToStatusDetails(end.status);
    return codec::BuildPayloadMessage(header, {});
  }
  *header.mutable_response() = end.answer->header;
  return codec::BuildPayloadMessage(header, end.answer->payloads);
}

// Infinite for a request without timeout.
absl::Duration TimeoutOf(const v1::ExecuteStreamRequest& message) {
  const absl::Duration timeout =
      absl::Seconds(message.timeout().seconds()) + absl::Nanoseconds(message.timeout().nanos());
  return timeout == absl::ZeroDuration() ? absl::InfiniteDuration() : timeout;
}

absl::Status InvalidMessage(absl::string_view field, absl::string_view problem) {
  return catalog::InvalidCall("", field, problem, 0);
}

}  // namespace

void ExecuteStreamCall::Listen(ExecuteContext& context, grpc::ServerCompletionQueue* queue) {
  if (context.calls->accepts_more.load(std::memory_order_acquire)) {
    new ExecuteStreamCall(context, queue);
  }
}

ExecuteStreamCall::ExecuteStreamCall(ExecuteContext& context, grpc::ServerCompletionQueue* queue)
    : context_(context), queue_(queue) {
  context_.calls->alive.Add();
  rpc_.AsyncNotifyWhenDone(&done_);
  context_.service->RequestExecuteStream(&rpc_, &stream_, queue_, queue_, &arrival_);
}

ExecuteStreamCall::~ExecuteStreamCall() {
  {
    // What devices' threads did with the members comes before their destruction.
    absl::MutexLock lock(&mutex_);
  }
  if (is_in_flight_) context_.in_flight.Remove();
  context_.calls->alive.Remove();
}

void ExecuteStreamCall::OnArrival(bool ok) {
  if (!ok) {  // the server shuts down; OnDone does not come for a call that never was
    delete this;
    return;
  }
  Listen(context_, queue_);
  const absl::StatusOr<Tenant*> tenant = context_.authenticator->TenantOf(rpc_);
  if (tenant.ok()) {
    tenant_ = *tenant;
  } else {
    EndInput(tenant.status(), StageClock());
  }
  bool reads_on = false;
  Sending sending;
  {
    absl::MutexLock lock(&mutex_);
    reads_on = NextRead();
    sending = NextSending();
  }
  if (reads_on) stream_.Read(&message_, &read_);
  Send(std::move(sending));
}

void ExecuteStreamCall::OnRead(bool ok) {
  const StageClock clock;
  if (ok && TakesInput()) HandleMessage(clock);
  message_.Clear();
  bool reads_on = false;
  Sending sending;
  {
    absl::MutexLock lock(&mutex_);
    is_reading_ = false;
    if (!ok) input_has_ended_ = true;
    reads_on = NextRead();
    sending = NextSending();
  }
  if (reads_on) stream_.Read(&message_, &read_);
  Send(std::move(sending));
}

bool ExecuteStreamCall::TakesInput() const {
  absl::MutexLock lock(&mutex_);
  return !input_has_ended_;
}

void ExecuteStreamCall::HandleMessage(const StageClock& clock) {
  codec::HeaderArena arena;
  auto& header = arena.Make<v1::ExecuteStreamRequest>();
  absl::StatusOr<codec::PayloadMessage> message = SplitRequest(message_, &header);
  if (!message.ok()) {
    EndInput(message.status(), clock);
    return;
  }
  if (!is_in_flight_) context_.in_flight.Add();
  is_in_flight_ = true;
  absl::Status status = CheckMessage(header);
  std::shared_ptr<CallState> call;
  if (status.ok()) {
    call = BeginRequest(header);
    if (call == nullptr) {
      status = InvalidMessage(
          "id", absl::StrCat("request ", header.id(), " of this stream is still in progress"));
    }
  }
  if (!status.ok()) {
    Answer(header.id(), RefuseMessage(status, tenant_, clock, message_), /*is_request_over=*/false);
    return;
  }
  StartExecution(context_,
                 {.tenant = tenant_,
                  .message = *std::move(message),
                  .header = header.request(),
                  .request_bytes = message_.Length(),
                  .rpc = &rpc_,
                  .call = std::move(call),
                  .clock = clock},
                 [this, id = header.id()](const ExecutionEnd& end) {
                   Answer(id, end, /*is_request_over=*/true);
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

std::shared_ptr<CallState> ExecuteStreamCall::BeginRequest(
    const v1::ExecuteStreamRequest& message) {
  auto call =
      std::make_shared<CallState>(RequestDeadline(context_, rpc_.deadline(), TimeoutOf(message)));
  absl::MutexLock lock(&mutex_);
  return in_progress_.try_emplace(message.id(), call).second ? call : nullptr;
}

void ExecuteStreamCall::EndInput(const absl::Status& status, const StageClock& clock) {
  RecordExecution(context_, RefuseMessage(status, tenant_, clock, message_), /*response_bytes=*/0);
  absl::MutexLock lock(&mutex_);
  input_has_ended_ = true;
  end_status_ = status;
}

void ExecuteStreamCall::Answer(uint64_t id, const ExecutionEnd& end, bool is_request_over) {
  grpc::ByteBuffer message = BuildMessage(id, end);
  RecordExecution(context_, end, end.status.ok() ? message.Length() : 0);
  std::shared_ptr<CallState> over;  // destroyed without the lock
  Sending sending;
  {
    absl::MutexLock lock(&mutex_);
    if (is_request_over) {
      auto node = in_progress_.extract(id);
      over = std::move(node.mapped());
    }
    if (!nobody_listens_) answers_.push_back(std::move(message));
    sending = NextSending();
  }
  Send(std::move(sending));
}

void ExecuteStreamCall::Send(Sending sending) {
  if (sending.answer) {
    // Written through unless another follows: the operation then ends when all that was written
    // has left for the client, so nothing stays with gRPC that is not watched.
    grpc::WriteOptions options;
    if (sending.is_last_answer) options.set_write_through();
    write_.Begin();
    stream_.Write(*sending.answer, options, &written_);
  } else if (sending.end) {
    write_.Begin();
    stream_.Finish(ToGrpcStatus(*sending.end, &rpc_), &ended_);
  }
}

void ExecuteStreamCall::OnWritten(bool /*ok*/) {
  write_.End();
  bool reads_on = false;
  bool is_idle = false;
  Sending sending;
  {
    absl::MutexLock lock(&mutex_);
    is_writing_ = false;
    is_idle = Unanswered() == 0;
    reads_on = NextRead();
    sending = NextSending();
  }
  if (is_idle) {
    context_.in_flight.Remove();
    is_in_flight_ = false;
  }
  if (reads_on) stream_.Read(&message_, &read_);
  Send(std::move(sending));
}

void ExecuteStreamCall::OnEnded(bool /*ok*/) {
  write_.End();
  DestroyAfterLastEvent();
}

void ExecuteStreamCall::OnDone(bool /*ok*/) {
  if (rpc_.IsCancelled()) Abandon();
  DestroyAfterLastEvent();
}

void ExecuteStreamCall::DestroyAfterLastEvent() {
  if (--events_to_come_ == 0) delete this;
}

void ExecuteStreamCall::Abandon() {
  std::vector<std::shared_ptr<CallState>> calls;
  std::deque<grpc::ByteBuffer> unwanted;  // destroyed without the lock
  {
    absl::MutexLock lock(&mutex_);
    input_has_ended_ = true;
    nobody_listens_ = true;
    unwanted.swap(answers_);
    for (const auto& [id, call] : in_progress_) calls.push_back(call);
  }
  for (const std::shared_ptr<CallState>& call : calls) call->MarkCancelled();
  for (const std::shared_ptr<CallState>& call : calls) call->Cancel();
  Sending sending;
  {
    absl::MutexLock lock(&mutex_);
    sending = NextSending();
  }
  Send(std::move(sending));
}

bool ExecuteStreamCall::NextRead() {
  if (is_reading_ || input_has_ended_ || Unanswered() >= context_.stream_window) return false;
  is_reading_ = true;
  return true;
}

ExecuteStreamCall::Sending ExecuteStreamCall::NextSending() {
  Sending sending;
  if (is_writing_ || is_ending_) return sending;
  if (!answers_.empty()) {
    sending.answer = std::move(answers_.front());
    answers_.pop_front();
    sending.is_last_answer = answers_.empty();
    is_writing_ = true;
  } else if (input_has_ended_ && !is_reading_ && in_progress_.empty()) {
    sending.end = end_status_;
    is_ending_ = true;
  }
  return sending;
}

size_t ExecuteStreamCall::Unanswered() const {
  return in_progress_.size() + answers_.size() + (is_writing_ ? 1 : 0);
}

}  // namespace opserve::server
