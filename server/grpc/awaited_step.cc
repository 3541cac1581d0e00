#include "server/grpc/awaited_step.h"

#include <utility>

#include "grpc/support/time.h"

namespace opserve::server {

AwaitedStep::AwaitedStep(grpc::CompletionQueue* queue, Call call)
    : queue_(queue), call_(std::move(call)) {}

void AwaitedStep::Begin() {
  is_running_ = true;
  call_.expect_event();
}

void AwaitedStep::TakeBack() {
  is_running_ = false;
  call_.event_ended();
}

void AwaitedStep::End(const absl::Status& status, absl::Time when) {
  {
    absl::MutexLock lock(&mutex_);
    status_ = status;
  }
  // A time that has passed for ever rings at once, others are rounded up to a millisecond. After it
  // the call may be gone; the alarm bears that.
  if (when == absl::InfinitePast()) {
    alarm_.Set(queue_, gpr_inf_past(GPR_CLOCK_REALTIME), &event_);
  } else {
    alarm_.Set(queue_, absl::ToChronoTime(when), &event_);
  }
}

void AwaitedStep::HandleEnd(bool /*ok*/) {
  is_running_ = false;
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    status = std::exchange(status_, absl::OkStatus());
  }
  call_.over(status);
  call_.event_ended();
}

}  // namespace opserve::server
