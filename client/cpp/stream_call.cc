#include "client/cpp/stream_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/deadline.h"
#include "client/cpp/grpc_status.h"

namespace opserve {
namespace {

constexpr char kExecuteStream[] = "/opserve.v1.OperatorService/ExecuteStream";

// The kinds of events in the queue; their numbers are gRPC's tags.
enum class Event : intptr_t { kWritten = 1, kAnswered, kStatus, kWaited };

void* Tag(Event event) { return reinterpret_cast<void*>(event); }

}  // namespace

// A stream is not repeated, except where no daemon has seen any of it.
StreamCall::StreamCall(std::shared_ptr<Transport> transport, const StreamOptions& options)
    : transport_(std::move(transport)),
      window_(options.window),
      deadline_(absl::Now() + options.timeout),
      attempts_(&transport_->retry_policy(), Repeats::kNever) {
  Begin();
  // The start of the call is in the queue before the thread looks at it.
  thread_ = std::thread(&StreamCall::Poll, this);
}

StreamCall::~StreamCall() {
  {
    absl::MutexLock lock(&mutex_);
    is_cancelled_ = true;
    // The thread then sees the call end, as after any failure, and gives the status to all
    // requests.
    if (context_ != nullptr) {
      context_->TryCancel();
    } else if (wait_) {
      // Between two attempts there is no call to cancel, but an alarm that ends at once.
      wait_->Cancel();
    }
  }
  thread_.join();
  // gRPC requires a queue to be shut down and emptied before it goes.
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

void StreamCall::Begin() {
  grpc::ClientContext* context = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    context_ = transport_->NewContext(deadline_);
    context = context_.get();
    // Cancelled during the wait: the new call ends at once.
    if (is_cancelled_) context->TryCancel();
  }
  call_ = transport_->stub().PrepareCall(context, kExecuteStream, &queue_);
  call_->StartCall(Tag(Event::kWritten));
  // The first read is outstanding all the time; it also tells when the call ends.
  call_->Read(&answer_, Tag(Event::kAnswered));
}

void StreamCall::Execute(const Request& request, Done done) {
  const uint64_t id = next_id_++;
  absl::StatusOr<EncodedRequest> encoded = EncodeStreamRequest(request, id);
  if (encoded.ok()) {
    // Refused requests come back by way of the callback, on the thread that made the request.
    absl::Status refusal = Enter(id, &*encoded, &done);
    if (refusal.ok()) return Write();
    encoded = refusal;
  }
  std::move(done)(encoded.status());
}

absl::Status StreamCall::Enter(uint64_t id, EncodedRequest* request, Done* done) {
  // A callback runs on the thread that makes room, so it cannot wait for room.
  const bool is_callback = std::this_thread::get_id() == thread_.get_id();
  absl::MutexLock lock(&mutex_);
  if (!is_callback && IsFull()) mutex_.Await(absl::Condition(this, &StreamCall::HasRoom));
  if (is_finishing_) return absl::FailedPreconditionError("the stream takes no more requests");
  if (stage_ == Stage::kEnded) return status_;
  // A callback may go one beyond the window: its own request still counts.
  if (in_flight_ > window_) {
    return absl::ResourceExhaustedError(absl::StrCat("the stream's window of ", window_,
                                                     " requests is full, and its callbacks cannot "
                                                     "wait"));
  }
  // In one step under the lock: an answer cannot arrive for a request that is not in the table.
  unsent_.emplace_back().Swap(&request->buffer);
  outstanding_.emplace(id, Outstanding{std::move(*done), std::move(request->borrow)});
  ++in_flight_;
  return absl::OkStatus();
}

absl::Status StreamCall::Finish() {
  {
    absl::MutexLock lock(&mutex_);
    is_finishing_ = true;
  }
  // Closes the sending side, if no write is in progress; else the end of that write does.
  Write();
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &StreamCall::IsOver));
  return status_;
}

void StreamCall::Write() {
  // Outside the lock: gRPC may take its time, and the thread needs the lock for answers.
  grpc::ByteBuffer message;
  {
    absl::MutexLock lock(&mutex_);
    if (!TakeNextWrite(&message)) return;
  }
  if (message.Valid()) {
    call_->Write(message, Tag(Event::kWritten));
  } else {
    call_->WritesDone(Tag(Event::kWritten));
  }
}

bool StreamCall::TakeNextWrite(grpc::ByteBuffer* message) {
  // One write at a time, by gRPC's rule. After a failed one all others fail too.
  if (is_writing_ || is_broken_ || stage_ != Stage::kOpen) return false;
  if (!unsent_.empty()) {
    message->Swap(&unsent_.front());
    unsent_.pop_front();
    is_writing_ = true;
  } else if (is_finishing_ && !is_half_closed_) {
    // Behind all requests: the queue is empty.
    is_half_closed_ = true;
    is_writing_ = true;
  }
  return is_writing_;
}

void StreamCall::Poll() {
  for (bool is_over = false; !is_over;) {
    // With ended requests in hand the thread looks again soon: gRPC does not tell when it lets go
    // of the bytes that they lent.
    const auto deadline = DeadlineAfter(ended_.empty() ? absl::InfiniteDuration() : kReleasePoll);
    void* tag = nullptr;
    bool ok = false;
    if (queue_.AsyncNext(&tag, &ok, deadline) == grpc::CompletionQueue::GOT_EVENT) {
      HandleEvent(tag, ok);
    }
    CallBack();
    absl::MutexLock lock(&mutex_);
    is_over = IsOver();
  }
}

void StreamCall::HandleEvent(void* tag, bool ok) {
  switch (static_cast<Event>(reinterpret_cast<intptr_t>(tag))) {
    case Event::kWritten:
      return HandleWritten(ok);
    case Event::kAnswered:
      return ok ? HandleAnswer() : HandleLastAnswer();
    case Event::kStatus:
      return HandleStatus();
    case Event::kWaited:
      return Begin();  // which ends at once if it was cancelled meanwhile
  }
}

void StreamCall::HandleWritten(bool ok) {
  // From the first success on something has left this process, and the call is not begun anew.
  has_begun_ = has_begun_ || ok;
  bool is_ending = false;
  {
    absl::MutexLock lock(&mutex_);
    is_writing_ = false;
    is_broken_ = !ok;
    is_ending = stage_ == Stage::kEnding;
  }
  // Finish waits until no write is with gRPC, by its rule.
  if (is_ending) {
    call_->Finish(&grpc_status_, Tag(Event::kStatus));
  } else {
    Write();
  }
}

void StreamCall::HandleAnswer() {
  absl::StatusOr<StreamAnswer> answer = DecodeStreamResponse(answer_);
  answer_.Clear();
  // At once, so that the next answer arrives while this one is handled.
  call_->Read(&answer_, Tag(Event::kAnswered));
  // A peer that broke the protocol is not listened to; reads go on until the call ends.
  if (!broken_protocol_.ok()) return;
  if (!answer.ok()) return Abort(answer.status());
  {
    absl::MutexLock lock(&mutex_);
    const auto answered = outstanding_.find(answer->id);
    if (answered != outstanding_.end()) {
      ended_.push_back({std::move(answered->second), std::move(answer->outcome)});
      outstanding_.erase(answered);
      return;
    }
  }
  Abort(
      BadAnswer(absl::StrCat("a message for request ", answer->id, ", which is not in progress")));
}

void StreamCall::HandleLastAnswer() {
  {
    absl::MutexLock lock(&mutex_);
    stage_ = Stage::kEnding;
    if (is_writing_) return;  // HandleWritten goes on
  }
  call_->Finish(&grpc_status_, Tag(Event::kStatus));
}

void StreamCall::HandleStatus() {
  absl::Status status;
  bool is_cancelled = false;
  {
    absl::MutexLock lock(&mutex_);
    // The context still has the trailers, with the time of a retry.
    status = broken_protocol_.ok() ? FromGrpcStatus(grpc_status_, *context_) : broken_protocol_;
    // OK from the daemon before it has answered all: no answer will come.
    if (status.ok() && !(is_half_closed_ && outstanding_.empty())) {
      status = BadAnswer("the stream ended before all requests were answered");
    }
    is_cancelled = is_cancelled_;
  }
  // No daemon took the call, and nothing was sent: it waits as a single call would.
  if (!status.ok() && !has_begun_ && !is_cancelled) {
    const absl::Duration time_left = deadline_ - absl::Now();
    if (const auto wait = attempts_.WaitAfter(time_left, has_begun_, &status)) {
      return WaitToBegin(*wait);
    }
  }
  End(status);
}

void StreamCall::WaitToBegin(absl::Duration wait) {
  std::unique_ptr<grpc::ClientContext> context;  // outlives the call
  call_ = nullptr;
  absl::MutexLock lock(&mutex_);
  context.swap(context_);
  // As at first: requests come in, and the start of the call is written before them.
  stage_ = Stage::kOpen;
  is_writing_ = true;
  is_broken_ = false;
  wait_.emplace().Set(&queue_, DeadlineAfter(is_cancelled_ ? absl::ZeroDuration() : wait),
                      Tag(Event::kWaited));
}

void StreamCall::End(const absl::Status& status) {
  std::unique_ptr<grpc::ClientContext> context;
  std::deque<grpc::ByteBuffer> unsent;
  absl::btree_map<uint64_t, Outstanding> unanswered;
  {
    // From here on requests are refused with the status instead of entering.
    absl::MutexLock lock(&mutex_);
    status_ = status;
    stage_ = Stage::kEnded;
    context.swap(context_);
    unsent.swap(unsent_);
    unanswered.swap(outstanding_);
  }
  // Drops all references to the requests' bytes, except for gRPC's own in an unfinished write.
  call_ = nullptr;
  context = nullptr;
  unsent.clear();
  for (auto& [id, request] : unanswered) ended_.push_back({std::move(request), status});
}

void StreamCall::CallBack() {
  while (!ended_.empty() && ended_.front().request.borrow.IsReleased()) {
    {
      // In a scope of its own: the callback and the borrow end before the request leaves the
      // window.
      Ended ended = std::move(ended_.front());
      ended_.pop_front();
      std::move(ended.request.done)(std::move(ended.outcome));
    }
    // Also wakes threads in Enter and in Finish: their conditions read this number.
    absl::MutexLock lock(&mutex_);
    --in_flight_;
  }
}

void StreamCall::Abort(const absl::Status& why) {
  broken_protocol_ = why;
  absl::MutexLock lock(&mutex_);
  // The status is that of broken_protocol_, set first.
  context_->TryCancel();
}

}  // namespace opserve
