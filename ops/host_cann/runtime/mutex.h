// Mutex and condition variable with clang's thread-safety annotations. The standard's own, which
// sanitizers understand even where the packaged libraries were not built for them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "absl/base/thread_annotations.h"

namespace opserve::host_cann {

using Clock = std::chrono::steady_clock;
// A moment to give up at; none: never.
using Deadline = std::optional<Clock::time_point>;

// `timeout_ms` below 0 is for ever.
inline Deadline DeadlineAfterMs(int32_t timeout_ms) {
  if (timeout_ms < 0) return std::nullopt;
  return Clock::now() + std::chrono::milliseconds(timeout_ms);
}

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

  // Waits for a notification, or returns false once `deadline` has passed. May wake early.
  bool Wait(Mutex& mutex, Deadline deadline = std::nullopt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    bool in_time = true;
    if (deadline.has_value()) {
      in_time = condition_.wait_until(lock, *deadline) == std::cv_status::no_timeout;
    } else {
      condition_.wait(lock);
    }
    lock.release();
    return in_time;
  }

 private:
  std::condition_variable condition_;
};

}  // namespace opserve::host_cann
