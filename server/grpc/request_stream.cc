#include "server/grpc/request_stream.h"

#include <string>
#include <utility>
#include <vector>

#include "server/grpc/call_trace.h"
#include "server/grpc/connection_key.h"
#include "server/grpc/message_bytes.h"
#include "server/grpc/status_conversion.h"
#include "server/request/refusal.h"

namespace opserve::server {
namespace {

// More answers would wait longer than they save.
constexpr size_t kMostHeld = 16;

}  // namespace

RequestStream::RequestStream(CallContext& context, grpc::ServerCompletionQueue* queue, Kind kind)
    : context_(context), queue_(queue), kind_(kind) {
  context_.calls->alive.Add();
  rpc_.AsyncNotifyWhenDone(&done_);
}

RequestStream::~RequestStream() {
  {
    // The work of devices' threads on the members comes before their destruction.
    absl::MutexLock lock(&mutex_);
  }
  if (is_in_flight_) context_.in_flight.Remove();
  if (has_arrived_) context_.calls->open.Remove();
  context_.calls->alive.Remove();
}

void RequestStream::OnArrival(bool ok) {
  if (!ok) {  // the server shuts down; OnDone does not come for a call that never was
    delete this;
    return;
  }
  has_arrived_ = true;
  context_.calls->open.Add();
  context_.end_alarms.Add(
      &end_alarm_, queue_, &server_end_,
      kind_ == Kind::kSession ? absl::Now() + context_.longest_session : absl::InfiniteFuture());
  ListenForNext();
  const std::string peer = rpc_.peer();
  const absl::StatusOr<Tenant*> tenant = context_.authenticator->TenantOf(rpc_, peer);
  if (tenant.ok()) {
    tenant_ = *tenant;
    connection_ = ConnectionKey(peer, tenant_->id());
    is_local_ = IsLocal(peer);
    OnBegin();
  } else {
    EndInput(tenant.status(), StageClock());
  }
  bool reads_on = false;
  Sending sending;
  {
    absl::MutexLock lock(&mutex_);
    reads_on = NextRead();
    NextSending(&sending);
  }
  if (reads_on) stream_.Read(&message_, &read_);
  Send(sending);
}

void RequestStream::OnRead(bool ok) {
  const StageClock clock;
  if (ok && BeginMessage()) {
    const absl::Status status = CheckMessageBytes(message_, context_.calls->max_message_bytes);
    if (status.ok()) {
      HandleMessage(clock);
    } else {
      EndInput(status, clock);
    }
  }
  message_.Clear();
  if (!ok || !TakesInput()) OnInputEnd();
  bool reads_on = false;
  bool is_alone = false;
  Sending sending;
  {
    absl::MutexLock lock(&mutex_);
    is_reading_ = false;
    is_handling_ = false;
    if (!ok) input_has_ended_ = true;
    reads_on = NextRead();
    NextSending(&sending);
    is_alone = Unanswered() == 1;
  }
  // A read has gRPC tell the client at once how much more it may send. A client that waits for a
  // single answer gets that first; one with many sends more at a time if it hears first.
  if (is_alone) Send(sending);
  if (reads_on) stream_.Read(&message_, &read_);
  if (!is_alone) Send(sending);
  DestroyAfterLastEvent();  // a stream that the server's end has ended was still reading
}

bool RequestStream::TakesInput() const {
  absl::MutexLock lock(&mutex_);
  return !input_has_ended_;
}

bool RequestStream::BeginMessage() {
  absl::MutexLock lock(&mutex_);
  is_handling_ = !input_has_ended_;
  return is_handling_;
}

void RequestStream::CountInFlight() {
  if (!is_in_flight_) is_in_flight_ = context_.CountUnlessDraining();
}

bool RequestStream::BeginRequest(uint64_t number, std::shared_ptr<CallState> call) {
  absl::MutexLock lock(&mutex_);
  if (in_progress_.size() >= context_.stream_window) return false;
  return in_progress_.try_emplace(number, std::move(call)).second;
}

std::shared_ptr<CallState> RequestStream::FindRequest(uint64_t number) {
  absl::MutexLock lock(&mutex_);
  const auto found = in_progress_.find(number);
  return found == in_progress_.end() ? nullptr : found->second;
}

absl::Status RequestStream::EndStatus() const {
  absl::MutexLock lock(&mutex_);
  return nobody_listens_ ? absl::CancelledError() : end_status_;
}

void RequestStream::EndInput(const absl::Status& status, const StageClock& clock) {
  Record(context_, RefuseMessage(status, tenant_, clock, rpc_, message_.Length()),
         /*response_bytes=*/0);
  absl::MutexLock lock(&mutex_);
  input_has_ended_ = true;
  end_status_ = status;
}

void RequestStream::Answer(const RequestEnd& end, uint64_t number, uint64_t answer_bytes,
                           AddOutgoing add, bool is_request_over) {
  Record(context_, end, end.status.ok() ? answer_bytes : 0);
  std::shared_ptr<CallState> over;  // destroyed without the lock
  Sending sending;
  {
    absl::MutexLock lock(&mutex_);
    if (is_request_over) {
      auto node = in_progress_.extract(number);
      over = std::move(node.mapped());
    }
    if (!nobody_listens_) add(outgoing_);
    NextSending(&sending);
  }
  Send(sending);
}

void RequestStream::AnswerWith(grpc::ByteBuffer* answer, const RequestEnd& end, uint64_t number,
                               bool is_request_over) {
  const auto add = [this, number, answer](OutgoingMessages& outgoing)
                       ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                         if (kind_ == Kind::kOneByOne) {
                           AddInTurn(number, answer, &outgoing);
                         } else {
                           outgoing.AddMessage(answer);
                         }
                       };
  Answer(end, number, answer->Length(), add, is_request_over);
}

void RequestStream::Say(AddOutgoing add) {
  Sending sending;
  {
    absl::MutexLock lock(&mutex_);
    if (!nobody_listens_) add(outgoing_);
    NextSending(&sending);
  }
  Send(sending);
}

size_t RequestStream::BytesThatWait(uint64_t number) {
  absl::MutexLock lock(&mutex_);
  return outgoing_.BytesInParts(number);
}

void RequestStream::AddInTurn(uint64_t number, grpc::ByteBuffer* answer,
                              OutgoingMessages* outgoing) {
  early_answers_[number].Swap(answer);
  while (!early_answers_.empty() && early_answers_.begin()->first == first_unanswered_) {
    outgoing->AddMessage(&early_answers_.begin()->second);
    early_answers_.erase(early_answers_.begin());
    ++first_unanswered_;
  }
}

void RequestStream::Send(Sending& sending) {
  if (sending.message.Valid()) {
    // Written through unless another follows: the operation then ends when all that was written
    // has left for the client, so nothing stays with gRPC that is not watched.
    grpc::WriteOptions options;
    if (sending.is_last) options.set_write_through();
    write_.Begin();
    stream_.Write(GivenMessage(&sending.message), options, &written_);
  } else if (sending.end) {
    write_.Begin();
    stream_.Finish(ToGrpcStatus(*sending.end, &rpc_), &ended_);
  }
}

void RequestStream::OnWritten(bool /*ok*/) {
  write_.End();
  bool reads_on = false;
  bool is_idle = false;
  Sending sending;
  {
    absl::MutexLock lock(&mutex_);
    is_writing_ = false;
    being_written_ = 0;
    is_idle = Unanswered() == 0;
    reads_on = NextRead();
    NextSending(&sending);
  }
  if (is_idle && is_in_flight_) {
    context_.in_flight.Remove();
    is_in_flight_ = false;
  }
  if (reads_on) stream_.Read(&message_, &read_);
  Send(sending);
  OnTaken();
}

void RequestStream::OnEnded(bool /*ok*/) {
  write_.End();
  has_ended_ = true;
  context_.end_alarms.Remove(&end_alarm_);
  --events_to_come_;
  DestroyAfterLastEvent();
}

void RequestStream::OnDone(bool /*ok*/) {
  if (rpc_.IsCancelled()) Abandon();
  --events_to_come_;
  DestroyAfterLastEvent();
}

// The server ends or soon will, or this stream has, or it is a session that has lasted long enough.
void RequestStream::OnServerEnd(bool ok) {
  if (!has_ended_ && !context_.end_alarms.has_rung()) {
    SayGoingAway(ok ? "the connection has reached its age" : kDrainingReason);
    context_.end_alarms.Add(&end_alarm_, queue_, &server_end_);
    return;
  }
  if (TakesInput()) SayGoingAway("the daemon is shutting down");
  Sending sending;
  {
    absl::MutexLock lock(&mutex_);
    if (!input_has_ended_) {
      input_has_ended_ = true;
      end_status_ = DrainingError(context_.moved_to);
    }
    // The client may not send anything for hours: its next message is not waited for.
    awaits_read_ = false;
    NextSending(&sending);
  }
  Send(sending);
  OnInputEnd();
  EventEnded();
}

void RequestStream::EventEnded() {
  --events_to_come_;
  DestroyAfterLastEvent();
}

void RequestStream::DestroyAfterLastEvent() {
  if (events_to_come_ > 0) return;
  {
    absl::MutexLock lock(&mutex_);
    if (is_reading_) return;
  }
  delete this;
}

void RequestStream::Abandon() {
  std::vector<std::shared_ptr<CallState>> calls;
  OutgoingMessages unwanted;  // destroyed without the lock
  std::map<uint64_t, grpc::ByteBuffer> unwanted_early;
  {
    absl::MutexLock lock(&mutex_);
    input_has_ended_ = true;
    nobody_listens_ = true;
    unwanted.swap(outgoing_);
    unwanted_early.swap(early_answers_);
    for (const auto& [number, call] : in_progress_) calls.push_back(call);
  }
  for (const std::shared_ptr<CallState>& call : calls) call->MarkCancelled();
  for (const std::shared_ptr<CallState>& call : calls) call->Cancel();
  OnInputEnd();
  Sending sending;
  {
    absl::MutexLock lock(&mutex_);
    NextSending(&sending);
  }
  Send(sending);
}

bool RequestStream::NextRead() {
  // What a client of a session may send next need not be a request.
  const size_t waiting = kind_ == Kind::kSession ? outgoing_.size() + being_written_ : Unanswered();
  if (is_reading_ || input_has_ended_ || waiting >= context_.stream_window) return false;
  is_reading_ = true;
  return true;
}

void RequestStream::NextSending(Sending* sending) {
  if (is_writing_ || is_ending_) return;
  // The answers to a message's requests travel together, where these end while it is handled.
  if (is_handling_ && outgoing_.size() < kMostHeld) return;
  if (!outgoing_.empty()) {
    is_writing_ = true;
    being_written_ = outgoing_.Take(&sending->message);
    sending->is_last = outgoing_.empty();
  } else if (input_has_ended_ && !(is_reading_ && awaits_read_) && in_progress_.empty()) {
    sending->end = end_status_;
    is_ending_ = true;
  }
}

size_t RequestStream::Unanswered() const {
  return in_progress_.size() + early_answers_.size() + outgoing_.size() + being_written_;
}

}  // namespace opserve::server
