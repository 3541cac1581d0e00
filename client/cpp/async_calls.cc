#include "client/cpp/async_calls.h"

#include <utility>

#include "absl/status/status.h"
#include "client/cpp/deadline.h"

namespace opserve {

void AsyncCall::Cancel() {
  absl::MutexLock lock(&mutex_);
  if (is_running_) call_.Cancel();
}

void AsyncCall::Finish() {
  absl::MutexLock lock(&mutex_);
  is_running_ = false;
  status_ = call_.Finish(&response_);
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

std::shared_ptr<AsyncCall> AsyncCalls::Start(const std::string& method, EncodedRequest* request,
                                             absl::Duration timeout, AsyncCall::Done done) {
  auto call = std::make_shared<AsyncCall>(std::move(done), request->borrow);
  {
    // Held until the call runs, so that neither its end nor its cancellation comes before.
    absl::MutexLock call_lock(&call->mutex_);
    if (Enter(call)) {
      call->is_running_ = true;
      call->call_.Start(transport_.stub(), method, &request->buffer, timeout, &queue_, call.get());
      return call;
    }
  }
  request->buffer.Clear();
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
      call->Finish();
      if (call->borrow_.IsReleased()) {
        Complete(call);
      } else {
        held_.push_back(call);
      }
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
