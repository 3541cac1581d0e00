#include "server/grpc/pace_watch.h"

#include <utility>

namespace opserve::server {

PaceWatch::PaceWatch(const UploadPace& pace, grpc::CompletionQueue* queue, Call call)
    : pace_(pace), queue_(queue), call_(std::move(call)) {}

void PaceWatch::Wait(uint64_t bytes) {
  is_waiting_ = true;
  pace_.WaitFor(bytes, absl::Now());
  if (!is_set_) {
    SetAlarm();
  } else if (pace_.due() < alarm_time_) {
    // It was set for a larger message. Complete sets it anew.
    alarm_.Cancel();
  }
}

void PaceWatch::Stop() {
  is_waiting_ = false;
  alarm_.Cancel();
}

void PaceWatch::SetAlarm() {
  call_.expect_event();
  is_set_ = true;
  alarm_time_ = pace_.due();
  alarm_.Set(queue_, absl::ToChronoTime(alarm_time_), static_cast<CompletionEvent*>(this));
}

// Messages that come in time do not set the alarm anew, so it rings about once per stall timeout,
// perhaps for a message that came long ago.
void PaceWatch::Complete(bool /*ok*/) {
  is_set_ = false;
  if (is_waiting_) {
    if (absl::Now() >= pace_.due()) {
      call_.on_overdue();
    } else {
      SetAlarm();
    }
  }
  // The function that runs must not be destroyed with the watch.
  const std::function<void()> event_ended = call_.event_ended;
  event_ended();
}

}  // namespace opserve::server
