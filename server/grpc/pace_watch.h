// Ends calls whose peer sends too slowly while the daemon keeps device memory for it.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "server/grpc/completion_event.h"
#include "server/grpc/upload_pace.h"

namespace opserve::server {

// The alarm of a call's UploadPace. All methods are called on the thread that polls the queue.
class PaceWatch final : private CompletionEvent {
 public:
  // The functions of the call that has the watch; called on the polling thread.
  struct Call {
    std::function<void()> expect_event;  // one more event_ended follows
    std::function<void()> on_overdue;    // the message that it waits for did not come in time
    std::function<void()> event_ended;   // may destroy the call, and the watch with it
  };

  // `queue` outlives the watch, which is destroyed after the last event_ended.
  PaceWatch(const UploadPace& pace, grpc::CompletionQueue* queue, Call call);

  // The call waits from now on for a message with `bytes` bytes of a tensor; until EndWait.
  void Wait(uint64_t bytes);
  // A message has come, or none will.
  void EndWait() { is_waiting_ = false; }
  // The message had `bytes` bytes of a tensor. Other messages earn no time.
  void Arrived(uint64_t bytes) { pace_.Arrived(bytes, absl::Now()); }
  // The call does not wait any more: brings the end of an alarm that is set.
  void Stop();

 private:
  void Complete(bool ok) override;
  void SetAlarm();

  UploadPace pace_;
  grpc::CompletionQueue* const queue_;
  const Call call_;
  grpc::Alarm alarm_;
  absl::Time alarm_time_;
  bool is_set_ = false;  // alarm_; its event has not come yet
  bool is_waiting_ = false;
};

}  // namespace opserve::server
