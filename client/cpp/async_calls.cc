#include "client/cpp/async_calls.h"

#include <utility>

#include "absl/status/status.h"
#include "client/cpp/deadline.h"

namespace opserve {

AsyncCall::AsyncCall(std::string method, EncodedRequest* request, absl::Time deadline,
                     Repeats repeats, Done done)
    : method_(std::move(method)),
      deadline_(deadline),
      repeats_(repeats),
      done_(std::move(done)),
      borrow_(request->borrow) {
  request_.Swap(&request->buffer);
}

void AsyncCall::Cancel() {
  absl::MutexLock lock(&mutex_);
  is_cancelled_ = true;
  if (stage_ == Stage::kAttempt) call_.Cancel();
  if (stage_ == Stage::kWait) alarm_->Cancel();
}

void AsyncCall::StartAttempt(Transport& transport, grpc::CompletionQueue* queue) {
  stage_ = Stage::kAttempt;
  call_.Start(transport, method_, request_, deadline_, queue, this);
}

void AsyncCall::StartWait(absl::Duration wait, grpc::CompletionQueue* queue) {
  stage_ = Stage::kWait;
  alarm_.emplace().Set(queue, DeadlineAfter(wait), this);
}

bool AsyncCall::Advance(Transport& transport, grpc::CompletionQueue* queue) {
  absl::MutexLock lock(&mutex_);
  if (stage_ == Stage::kWait) {
    if (!is_cancelled_) {
      StartAttempt(transport, queue);
      return true;
    }
    status_ = absl::CancelledError("cancelled while waiting to be repeated");
  } else {
    status_ = call_.Finish(&response_);
    if (status_.ok()) {
      transport.retry_policy().RecordSuccess();
    } else if (!is_cancelled_) {
      const absl::Duration time_left = deadline_ - absl::Now();
      if (!attempts_) attempts_.emplace(&transport.retry_policy(), repeats_);
      if (const auto wait = attempts_->WaitAfter(time_left, call_.MayHaveRun(), &status_)) {
        StartWait(*wait, queue);
        return true;
      }
    }
  }
  stage_ = Stage::kOver;
  request_.Clear();
  return false;
}

AsyncCalls::~AsyncCalls() {
  std::vector<std::shared_ptr<AsyncCall>> cancelled;
  {
    absl::MutexLock lock(&mutex_);
    is_closing_ = true;
    for (const auto& [call, shared] : in_flight_) cancelled.push_back(shared);
  }
  for (const std::shared_ptr<AsyncCall>& call : cancelled) call->Cancel();
  std::thread poller;
  {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &AsyncCalls::IsIdle));
    poller = std::move(poller_);
  }
  queue_.Shutdown();
  if (poller.joinable()) {
    poller.join();
  } else {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
}

std::shared_ptr<AsyncCall> AsyncCalls::Start(std::string method, EncodedRequest* request,
                                             absl::Duration timeout, Repeats repeats,
                                             AsyncCall::Done done) {
  auto call = std::make_shared<AsyncCall>(std::move(method), request, absl::Now() + timeout,
                                          repeats, std::move(done));
  {
    // Held until the call runs, so that neither its end nor its cancellation comes before.
    absl::MutexLock call_lock(&call->mutex_);
    if (Enter(call)) {
      call->StartAttempt(transport_, &queue_);
      return call;
    }
  }
  call->request_.Clear();
  std::move(call->done_)(absl::CancelledError("the client is being destroyed"), {});
  return call;
}

bool AsyncCalls::Enter(const std::shared_ptr<AsyncCall>& call) {
  absl::MutexLock lock(&mutex_);
  if (is_closing_) return false;
  in_flight_.emplace(call.get(), call);
  if (!poller_.joinable()) poller_ = std::thread(&AsyncCalls::Poll, this);
  return true;
}

void AsyncCalls::Poll() {
  for (;;) {
    const auto deadline = DeadlineAfter(held_.empty() ? absl::InfiniteDuration() : kReleasePoll);
    void* tag = nullptr;
    bool ok = false;
    const grpc::CompletionQueue::NextStatus next = queue_.AsyncNext(&tag, &ok, deadline);
    if (next == grpc::CompletionQueue::SHUTDOWN) return;
    if (next == grpc::CompletionQueue::GOT_EVENT) {
      auto* call = static_cast<AsyncCall*>(tag);
      if (!call->Advance(transport_, &queue_)) held_.push_back(call);
    }
    std::erase_if(held_, [this](AsyncCall* call) {
      const bool is_released = call->borrow_.IsReleased();
      if (is_released) Complete(call);
      return is_released;
    });
  }
}

void AsyncCalls::Complete(AsyncCall* call) {
  std::move(call->done_)(call->status_, call->response_);
  // After `done`, so that the destructor waits for it.
  absl::MutexLock lock(&mutex_);
  in_flight_.erase(call);
}

}  // namespace opserve
