// Requests that wait for a lane of one device: first in, first out, up to a limit.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/scheduling/execution_request.h"

namespace opserve::server {

// Thread-safe. Destroy it only when no thread is inside a method.
//
// Invariants, whenever mutex_ is free: waiting_.size() <= capacity_; closed_ changes once, to true.
class DeviceQueue {
 public:
  explicit DeviceQueue(size_t capacity) : capacity_(capacity) {}

  // Takes *request, leaving it null, if and only if the result is OK. Never waits.
  // kResourceExhausted (reason "queue_full"): full.  kUnavailable: closed.
  absl::Status Push(std::unique_ptr<ExecutionRequest>* request) ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits for a request. Null: closed and empty, the lane should end.
  std::unique_ptr<ExecutionRequest> Pop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Refuses what comes from now on; what waits is still handed out.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

  // Requests waiting now, and when the oldest of them came (0: none). Neither takes a lock.
  size_t depth() const { return depth_.load(std::memory_order_relaxed); }
  absl::Time oldest_arrival() const {
    return absl::FromUnixNanos(oldest_arrival_ns_.load(std::memory_order_relaxed));
  }

 private:
  struct Waiting {
    std::unique_ptr<ExecutionRequest> request;
    absl::Time arrival;
  };

  bool CanPop() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return closed_ || !waiting_.empty(); }
  void PublishDepth() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t capacity_;
  absl::Mutex mutex_;
  std::deque<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  // Copies for readers without the lock, written under it.
  std::atomic<size_t> depth_ = 0;
  std::atomic<int64_t> oldest_arrival_ns_ = 0;
};

}  // namespace opserve::server
