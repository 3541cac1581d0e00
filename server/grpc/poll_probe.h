// Asks the thread that polls a completion queue whether it still does.
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "server/grpc/call_counter.h"
#include "server/grpc/completion_event.h"

namespace opserve::server {

// Owns itself.
class PollProbe final : public CompletionEvent {
 public:
  // Adds one to `unanswered` until the thread has come for it.
  static void Send(grpc::CompletionQueue* queue, std::shared_ptr<CallCounter> unanswered) {
    auto* probe = new PollProbe(std::move(unanswered));
    probe->unanswered_->Add();
    probe->alarm_.Set(queue, std::chrono::system_clock::now(), probe);
  }

  void Complete(bool /*ok*/) override {
    unanswered_->Remove();
    delete this;
  }

 private:
  explicit PollProbe(std::shared_ptr<CallCounter> unanswered)
      : unanswered_(std::move(unanswered)) {}

  const std::shared_ptr<CallCounter> unanswered_;
  grpc::Alarm alarm_;
};

}  // namespace opserve::server
