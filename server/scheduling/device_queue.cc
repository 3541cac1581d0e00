#include "server/scheduling/device_queue.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "ops/catalog/error.h"

namespace opserve::server {

absl::Status DeviceQueue::Push(std::unique_ptr<ExecutionRequest>* request) {
  absl::MutexLock lock(&mutex_);
  if (closed_) return absl::UnavailableError("the device takes no more requests");
  if (waiting_.size() == capacity_) {
    return catalog::ErrorWithReason(
        absl::StatusCode::kResourceExhausted, "queue_full",
        absl::StrCat("the queue is full with ", capacity_, " requests"));
  }
  waiting_.push_back({std::move(*request), absl::Now()});
  PublishDepth();
  return absl::OkStatus();
}

std::unique_ptr<ExecutionRequest> DeviceQueue::Pop() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &DeviceQueue::CanPop));
  if (waiting_.empty()) return nullptr;
  std::unique_ptr<ExecutionRequest> request = std::move(waiting_.front().request);
  waiting_.pop_front();
  PublishDepth();
  return request;
}

void DeviceQueue::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
}

void DeviceQueue::PublishDepth() {
  depth_.store(waiting_.size(), std::memory_order_relaxed);
  oldest_arrival_ns_.store(waiting_.empty() ? 0 : absl::ToUnixNanos(waiting_.front().arrival),
                           std::memory_order_relaxed);
}

}  // namespace opserve::server
