// Streams with running tasks that wait for one and the same thing.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ops/host_cann/runtime/mutex.h"
#include "ops/host_cann/runtime/stream.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {

// Thread-safe.
class Waiters {
 public:
  // Registers a stream for as long as it lives.
  class Scope {
   public:
    Scope(Waiters& waiters, std::shared_ptr<Stream> stream)
        : waiters_(waiters), stream_(std::move(stream)) {
      MutexLock lock(waiters_.mutex_);
      waiters_.streams_.push_back(stream_);
    }
    ~Scope() {
      MutexLock lock(waiters_.mutex_);
      auto& streams = waiters_.streams_;
      streams.erase(std::find(streams.begin(), streams.end(), stream_));
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Waiters& waiters_;
    const std::shared_ptr<Stream> stream_;
  };

  // Lets the running task of each registered stream look again.
  void WakeAll() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<std::shared_ptr<Stream>> streams;
    {
      MutexLock lock(mutex_);
      streams = streams_;
    }
    for (const std::shared_ptr<Stream>& stream : streams) stream->Wake();
  }

 private:
  Mutex mutex_;
  std::vector<std::shared_ptr<Stream>> streams_ ABSL_GUARDED_BY(mutex_);
};

// A flag that streams set, clear and wait for. Thread-safe.
class Flag {
 public:
  bool is_set() const { return is_set_.load(std::memory_order_acquire); }
  // Clears the flag and returns whether it was set.
  bool Take() { return is_set_.exchange(false, std::memory_order_acq_rel); }
  void Set() {
    is_set_.store(true, std::memory_order_release);
    waiters_.WakeAll();
  }
  Waiters& waiters() { return waiters_; }

 private:
  std::atomic<bool> is_set_{false};
  Waiters waiters_;
};

// For a running task: waits until `ready(releasing)` as Stream::WaitInTask does, at most `limit_us`
// microseconds (0: for ever). `awaited` stands in the message of a timeout, 107020.
template <typename Ready>
TaskResult WaitAtMost(Stream& stream, uint64_t limit_us, const char* awaited, Ready ready) {
  Deadline deadline;
  if (limit_us > 0) deadline = Clock::now() + std::chrono::microseconds(limit_us);
  switch (stream.WaitInTask(deadline, ready)) {
    case Stream::Waited::kReady:
      return {};
    case Stream::Waited::kCancelled:
      return TaskResult::Cancelled();
    case Stream::Waited::kTimeout:
      break;
  }
  return TaskResult::Failure(
      ACL_ERROR_RT_TASK_TIMEOUT,
      Concat("waiting for ", awaited, " took longer than ", limit_us, " microseconds"));
}

}  // namespace opserve::host_cann
