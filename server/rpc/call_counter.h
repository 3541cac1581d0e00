// Keeps count of calls, so that a server ends only when they have.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/rpc/write_watch.h"

namespace opserve::server {

// Thread-safe.
class CallCounter {
 public:
  void Add() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    ++count_;
  }
  // Adds one unless `flag` is set; whether it did. A thread that sets the flag and then waits sees
  // every call that was added.
  bool AddUnless(const std::atomic<bool>& flag) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (flag.load(std::memory_order_acquire)) return false;
    ++count_;
    return true;
  }
  void Remove() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    --count_;
  }

  // Waits until there are none, at most for `timeout`; returns how many are left.
  int64_t AwaitNone(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(this, &CallCounter::IsNone), timeout);
    return count_;
  }

 private:
  bool IsNone() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return count_ == 0; }

  absl::Mutex mutex_;
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Every call object of a server, the ones that still wait for a call included. A completion queue
// may be shut down only when none is left that could start an operation on it.
struct ServerCalls {
  ServerCalls(uint64_t max_message_bytes, uint64_t max_header_bytes,
              absl::Duration write_stall_timeout)
      : max_message_bytes(max_message_bytes),
        max_header_bytes(max_header_bytes),
        writes(write_stall_timeout) {}

  const uint64_t max_message_bytes;  // of a request
  const uint64_t max_header_bytes;   // of these, beside payloads

  // While true, each call that arrives leaves a new one waiting.
  std::atomic<bool> accepts_more = true;
  CallCounter alive;
  CallCounter open;   // those of them that have arrived
  WriteWatch writes;  // of all of them
};

}  // namespace opserve::server
