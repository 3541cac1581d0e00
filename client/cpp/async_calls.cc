#include "client/cpp/async_calls.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "client/cpp/deadline.h"

namespace opserve {
namespace {

// The calls that this thread polls for.
thread_local const AsyncCalls* polled_here = nullptr;

}  // namespace

AsyncCall::AsyncCall(AsyncCalls* calls, EncodedRequest* request, absl::Time deadline,
                     bool is_blocking, Done done)
    : calls_(*calls),
      deadline_(deadline),
      is_blocking_(is_blocking),
      done_(std::move(done)),
      borrow_(request->borrow),
      number_(std::move(request->number)) {
  request_.Swap(&request->buffer);
}

void AsyncCall::Cancel() {
  absl::MutexLock lock(&mutex_);
  is_cancelled_ = true;
  switch (stage_) {
    case Stage::kSession:
      if (!place_->session->Cancel(place_->number)) return;
      --calls_.num_in_session_;
      place_.reset();
      StartWait(absl::ZeroDuration());  // ends on the polling thread
      return;
    case Stage::kAttempt:
      return call_.Cancel();
    case Stage::kWait:
      return alarm_->Cancel();
    case Stage::kOver:
      return;
  }
}

void AsyncCall::Start() {
  if (calls_.sessions_) {
    // Before, so that the polling thread does not find less than there are.
    ++calls_.num_in_session_;
    place_ =
        calls_.sessions_->Enter(this, &request_, deadline_, /*is_poller=*/polled_here == &calls_);
    if (place_) {
      stage_ = Stage::kSession;
      return;
    }
    --calls_.num_in_session_;
  }
  StartAttempt();
}

void AsyncCall::StartAgain() {
  // A large one may fit no call.
  if (request_.Length() > Session::kWhole) {
    Start();
  } else {
    StartAttempt();
  }
}

void AsyncCall::StartAttempt() {
  stage_ = Stage::kAttempt;
  call_.Start(calls_.transport_, kExecute, request_, deadline_, &calls_.queue_,
              static_cast<QueueEvent*>(this));
}

void AsyncCall::StartWait(absl::Duration wait) {
  stage_ = Stage::kWait;
  alarm_.emplace().Set(&calls_.queue_, DeadlineAfter(wait), static_cast<QueueEvent*>(this));
}

void AsyncCall::Complete(bool /*ok*/) {
  if (!Advance()) calls_.held_.push_back(this);
}

void AsyncCall::HandleOutcome(SessionOutcome outcome) {
  --calls_.num_in_session_;
  if (!TakeOutcome(std::move(outcome))) calls_.held_.push_back(this);
}

bool AsyncCall::Advance() {
  absl::MutexLock lock(&mutex_);
  if (stage_ == Stage::kAttempt) {
    status_ = call_.Finish(&response_);
    return GoOnAfter(call_.MayHaveRun());
  }
  if (!is_cancelled_) {
    StartAgain();
    return true;
  }
  status_ = absl::CancelledError("cancelled while waiting to be sent");
  return GoOnAfter(/*may_have_run=*/false);
}

bool AsyncCall::TakeOutcome(SessionOutcome outcome) {
  absl::MutexLock lock(&mutex_);
  place_.reset();
  if (!outcome.was_started && !is_cancelled_) {
    StartAgain();
    return true;
  }
  status_ = outcome.was_started ? std::move(outcome.status)
                                : absl::CancelledError("cancelled before it was sent");
  response_.Swap(&outcome.response);
  return GoOnAfter(/*may_have_run=*/true);
}

bool AsyncCall::GoOnAfter(bool may_have_run) {
  RetryPolicy& policy = calls_.transport_.retry_policy();
  if (status_.ok()) {
    policy.RecordSuccess();
  } else if (!is_cancelled_) {
    if (!attempts_) attempts_.emplace(&policy);
    if (const auto wait = attempts_->WaitAfter(deadline_ - absl::Now(), may_have_run, &status_)) {
      StartWait(*wait);
      return true;
    }
  }
  stage_ = Stage::kOver;
  request_.Clear();
  return false;
}

AsyncCalls::AsyncCalls(Transport* transport) : transport_(*transport) {
  if (transport->uses_sessions()) sessions_.emplace(transport, &queue_, &poller_writes_);
}

AsyncCalls::~AsyncCalls() {
  std::vector<std::shared_ptr<AsyncCall>> cancelled;
  {
    absl::MutexLock lock(&mutex_);
    is_closing_ = true;
    for (const auto& [call, shared] : in_flight_) cancelled.push_back(shared);
  }
  for (const std::shared_ptr<AsyncCall>& call : cancelled) call->Cancel();
  if (sessions_) sessions_->Stop();
  std::thread thread;
  {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &AsyncCalls::IsIdle));
    thread = std::move(thread_);
  }
  queue_.Shutdown();
  if (thread.joinable()) {
    thread.join();
  } else {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
}

std::shared_ptr<AsyncCall> AsyncCalls::Start(EncodedRequest* request, absl::Duration timeout,
                                             AsyncCall::Done done) {
  return Begin(request, timeout, /*is_blocking=*/false, std::move(done));
}

std::shared_ptr<AsyncCall> AsyncCalls::Begin(EncodedRequest* request, absl::Duration timeout,
                                             bool is_blocking, AsyncCall::Done done) {
  auto call = std::make_shared<AsyncCall>(this, request, absl::Now() + timeout, is_blocking,
                                          std::move(done));
  {
    // Held until the call runs, so that neither its end nor its cancellation comes before.
    absl::MutexLock call_lock(&call->mutex_);
    if (Enter(call)) {
      call->Start();
      return call;
    }
  }
  call->request_.Clear();
  std::move(call->done_)(absl::CancelledError("the client is being destroyed"), {});
  return call;
}

absl::Status AsyncCalls::Call(EncodedRequest* request, absl::Duration timeout,
                              grpc::ByteBuffer* response) {
  if (polled_here == this) {
    return transport_.Call(kExecute, &request->buffer, timeout, response, &request->borrow);
  }
  absl::Notification has_ended;
  absl::Status status;
  const auto call = Begin(request, timeout, /*is_blocking=*/true,
                          [&](const absl::Status& outcome, const grpc::ByteBuffer& received) {
                            status = outcome;
                            *response = received;
                            has_ended.Notify();
                          });
  if (call->is_polled_for_) PollUntil(has_ended);
  has_ended.WaitForNotification();
  return status;
}

bool AsyncCalls::IsPolledHere(const AsyncCalls* calls) { return polled_here == calls; }

bool AsyncCalls::Enter(const std::shared_ptr<AsyncCall>& call) {
  absl::MutexLock lock(&mutex_);
  if (is_closing_) return false;
  was_last_blocking_ = call->is_blocking_;
  if (call->is_blocking_ && in_flight_.empty() && poller_ == Poller::kNobody) {
    call->is_polled_for_ = true;
    poller_ = Poller::kCaller;
  }
  in_flight_.emplace(call.get(), call);
  if (!thread_.joinable()) thread_ = std::thread(&AsyncCalls::Run, this);
  return true;
}

void AsyncCalls::Run() {
  polled_here = this;
  for (;;) {
    AwaitTurn();
    do {
      if (!Poll(/*is_thread=*/true)) return;
    } while (!EndsTurn());
  }
}

void AsyncCalls::AwaitTurn() {
  absl::MutexLock lock(&mutex_);
  uint64_t turns = 0;
  do {
    turns = caller_turns_;
    mutex_.AwaitWithTimeout(absl::Condition(this, &AsyncCalls::IsThreadWanted), kQuietTime);
  } while (poller_ != Poller::kNobody || (turns != caller_turns_ && !IsThreadWanted()));
  poller_ = Poller::kThread;
  has_completed_ = false;
}

// The next blocking call is likely to come from the caller of the last one, which can poll for it.
bool AsyncCalls::EndsTurn() {
  if (!has_completed_) return false;
  absl::MutexLock lock(&mutex_);
  if (!was_last_blocking_ || !in_flight_.empty() || is_closing_) return false;
  poller_ = Poller::kNobody;
  return true;
}

void AsyncCalls::PollUntil(const absl::Notification& has_ended) {
  // From a callback of another client, that one polls here, too.
  const AsyncCalls* const others = std::exchange(polled_here, this);
  while (!has_ended.HasBeenNotified() && !HasCallbacks()) Poll(/*is_thread=*/false);
  polled_here = others;
  absl::MutexLock lock(&mutex_);
  ++caller_turns_;
  poller_ = Poller::kNobody;  // the thread takes over if there are other calls
}

bool AsyncCalls::Poll(bool is_thread) {
  // The daemon has been told of a blocking call before it is told how much more it may send.
  if (sessions_) sessions_->ReadOn();
  void* tag = nullptr;
  bool ok = false;
  const grpc::CompletionQueue::NextStatus next =
      queue_.AsyncNext(&tag, &ok, DeadlineAfter(PollTimeout()));
  if (next == grpc::CompletionQueue::SHUTDOWN) return false;
  poller_writes_ = true;
  if (next == grpc::CompletionQueue::GOT_EVENT) static_cast<QueueEvent*>(tag)->Complete(ok);
  TendSessions();
  poller_writes_ = false;
  if (sessions_) sessions_->Write();
  CompleteReleased(/*runs_callbacks=*/is_thread);
  if (sessions_) sessions_->Write();  // what the callbacks sent, in one message
  return true;
}

absl::Duration AsyncCalls::PollTimeout() const {
  if (!held_.empty()) return kReleasePoll;
  return num_in_session_ > 0 ? kTendInterval : absl::InfiniteDuration();
}

void AsyncCalls::TendSessions() {
  if (num_in_session_ == 0) return;
  const absl::Time now = absl::Now();
  if (now < next_tending_) return;
  next_tending_ = now + kTendInterval;
  sessions_->Tend(now);
}

void AsyncCalls::CompleteReleased(bool runs_callbacks) {
  // A `done` may start calls, but ends none.
  std::erase_if(held_, [this, runs_callbacks](AsyncCall* call) {
    const bool may_end = (call->is_blocking_ || runs_callbacks) && call->borrow_.IsReleased();
    if (may_end) Complete(call);
    return may_end;
  });
}

bool AsyncCalls::HasCallbacks() const {
  return std::any_of(held_.begin(), held_.end(),
                     [](const AsyncCall* call) { return !call->is_blocking_; });
}

void AsyncCalls::Complete(AsyncCall* call) {
  has_completed_ = true;
  call->number_ = {};
  std::move(call->done_)(call->status_, call->response_);
  // After `done`, so that the destructor waits for it.
  absl::MutexLock lock(&mutex_);
  in_flight_.erase(call);
}

absl::Status CallExecute(Transport& transport, AsyncCalls* calls, EncodedRequest* request,
                         absl::Duration timeout, grpc::ByteBuffer* response) {
  if (calls != nullptr && transport.uses_sessions()) {
    return calls->Call(request, timeout, response);
  }
  return transport.Call(kExecute, &request->buffer, timeout, response, &request->borrow);
}

}  // namespace opserve
