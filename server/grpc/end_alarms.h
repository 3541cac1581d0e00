// Tells long-lived calls that the server ends, or soon will, and that they have lasted long enough.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpc/support/time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/time.h"

namespace opserve::server {

// The alarms of open calls, which bring the news to the threads that poll their queues. Each alarm
// rings once: when the server ends or soon will, when its time has come, or when its call removes
// it, whichever comes first; unless the server ends it may be added again. Thread-safe.
class EndAlarms {
 public:
  // `tag` comes out of `queue` once; its "ok" is true only if `time` has come or has_rung().
  // `alarm` lives until then.
  void Add(grpc::Alarm* alarm, grpc::CompletionQueue* queue, void* tag,
           absl::Time time = absl::InfiniteFuture()) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    gpr_timespec when = gpr_inf_future(GPR_CLOCK_REALTIME);
    if (has_rung_) {
      when = gpr_inf_past(GPR_CLOCK_REALTIME);
    } else if (time != absl::InfiniteFuture()) {
      when = grpc::TimePoint(absl::ToChronoTime(time)).raw_time();
    }
    alarm->Set(queue, when, tag);
    alarms_.insert(alarm);
  }

  // Rings the alarm unless it has rung. Exactly once for each that was ever added, before it is
  // destroyed.
  void Remove(grpc::Alarm* alarm) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    alarms_.erase(alarm);
    alarm->Cancel();
  }

  // Whether the server ends.
  bool has_rung() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return has_rung_;
  }

  // The server will end soon: rings the alarms that there are.
  void RingEarly() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    for (grpc::Alarm* alarm : alarms_) alarm->Cancel();
  }

  // Rings all alarms; those added later ring at once.
  void RingAll() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    has_rung_ = true;
    for (grpc::Alarm* alarm : alarms_) alarm->Cancel();
  }

 private:
  mutable absl::Mutex mutex_;
  absl::flat_hash_set<grpc::Alarm*> alarms_ ABSL_GUARDED_BY(mutex_);
  bool has_rung_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace opserve::server
