#include "server/scheduling/device_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "ops/catalog/error.h"

namespace opserve::server {

absl::Status DeviceQueue::Push(std::unique_ptr<LaneTask>* task) {
  absl::MutexLock lock(&mutex_);
  if (is_closed_ || is_paused_) {
    return catalog::ErrorWithReason(absl::StatusCode::kUnavailable, "device_unavailable",
                                    "the device takes no requests now");
  }
  if (waiting_.size() == capacity_) {
    return catalog::ErrorWithReason(
        absl::StatusCode::kResourceExhausted, "queue_full",
        absl::StrCat("the queue is full with ", capacity_, " requests"));
  }
  waiting_.push_back({std::move(*task), absl::Now()});
  PublishDepth();
  return absl::OkStatus();
}

std::unique_ptr<LaneTask> DeviceQueue::Pop() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &DeviceQueue::CanPop));
  if (is_paused_ || waiting_.empty()) return nullptr;
  std::unique_ptr<LaneTask> task = std::move(waiting_.front().task);
  waiting_.pop_front();
  executing_.fetch_add(1);
  PublishDepth();
  return task;
}

std::unique_ptr<LaneTask> DeviceQueue::Remove(const CallState* call) {
  absl::MutexLock lock(&mutex_);
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [call](const Waiting& waiting) {
    return waiting.task->call().get() == call;
  });
  if (found == waiting_.end()) return nullptr;
  std::unique_ptr<LaneTask> task = std::move(found->task);
  waiting_.erase(found);
  PublishDepth();
  return task;
}

std::vector<std::unique_ptr<LaneTask>> DeviceQueue::TakeAllLocked() {
  std::vector<std::unique_ptr<LaneTask>> tasks;
  for (Waiting& waiting : waiting_) tasks.push_back(std::move(waiting.task));
  waiting_.clear();
  PublishDepth();
  return tasks;
}

std::vector<std::unique_ptr<LaneTask>> DeviceQueue::TakeAll() {
  absl::MutexLock lock(&mutex_);
  return TakeAllLocked();
}

void DeviceQueue::Open() {
  absl::MutexLock lock(&mutex_);
  is_paused_ = false;
}

std::vector<std::unique_ptr<LaneTask>> DeviceQueue::Pause() {
  absl::MutexLock lock(&mutex_);
  is_paused_ = true;
  return TakeAllLocked();
}

void DeviceQueue::Close() {
  absl::MutexLock lock(&mutex_);
  is_closed_ = true;
}

void DeviceQueue::PublishDepth() {
  depth_.store(waiting_.size());
  oldest_arrival_ns_.store(waiting_.empty() ? 0 : absl::ToUnixNanos(waiting_.front().arrival),
                           std::memory_order_relaxed);
}

}  // namespace opserve::server
