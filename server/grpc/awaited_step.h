// A step of a call that another thread ends: its end comes to the polling thread, as an event.
#pragma once

#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "server/grpc/completion_event.h"

namespace opserve::server {

// One step at a time. All methods but End are called on the thread that polls the queue.
class AwaitedStep {
 public:
  // The functions of the call that has the step; called on the polling thread.
  struct Call {
    std::function<void()> expect_event;                    // one more event_ended follows
    std::function<void(const absl::Status& status)> over;  // the step has ended
    std::function<void()> event_ended;                     // after it; may destroy the call
  };

  // `queue` outlives the step, which is destroyed after the last event_ended.
  AwaitedStep(grpc::CompletionQueue* queue, Call call);
  AwaitedStep(const AwaitedStep&) = delete;
  AwaitedStep& operator=(const AwaitedStep&) = delete;

  // To be called before another thread could end it; no step is running.
  void Begin();
  // It did not begin after all: nobody ends it.
  void TakeBack();
  // From Begin until the call hears of the end.
  bool is_running() const { return is_running_; }

  // Ends it, on any thread; the call hears of it at `when`, or at once. The step may be gone then.
  void End(const absl::Status& status, absl::Time when = absl::InfinitePast())
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void HandleEnd(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);

  grpc::CompletionQueue* const queue_;
  const Call call_;
  bool is_running_ = false;
  grpc::Alarm alarm_;
  MemberEvent<AwaitedStep, &AwaitedStep::HandleEnd> event_{this};
  absl::Mutex mutex_;  // orders all of a step before its successors
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve::server
