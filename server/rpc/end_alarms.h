// Tells long-lived calls that the server ends.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "grpc/support/time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"

namespace opserve::server {

// The alarms of open calls, which bring the news to the threads that poll their queues. Each alarm
// rings once: when the server ends, or when its call removes it, whichever comes first.
// Thread-safe.
class EndAlarms {
 public:
  // `tag` comes out of `queue` once, whatever its "ok" says. `alarm` lives until then.
  void Add(grpc::Alarm* alarm, grpc::CompletionQueue* queue, void* tag)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    alarm->Set(queue,
               has_rung_ ? gpr_inf_past(GPR_CLOCK_REALTIME) : gpr_inf_future(GPR_CLOCK_REALTIME),
               tag);
    alarms_.insert(alarm);
  }

  // Rings the alarm unless it has rung. Exactly once for each that was added, before it is
  // destroyed.
  void Remove(grpc::Alarm* alarm) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    alarms_.erase(alarm);
    alarm->Cancel();
  }

  // Rings all alarms; those added later ring at once.
  void RingAll() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    has_rung_ = true;
    for (grpc::Alarm* alarm : alarms_) alarm->Cancel();
  }

 private:
  absl::Mutex mutex_;
  absl::flat_hash_set<grpc::Alarm*> alarms_ ABSL_GUARDED_BY(mutex_);
  bool has_rung_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace opserve::server
