#include "ops/host_cann/runtime/report_threads.h"

#include <utility>
#include <vector>

#include "ops/host_cann/runtime/device.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/stream.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {

void Callback::Run() {
  if (!Leave(State::kPending, State::kRunning)) return;
  function_(user_data_);
  state_.store(State::kFinished, std::memory_order_release);
  stream_->Wake();
}

void Callback::Drop() {
  if (Leave(State::kPending, State::kFinished)) stream_->Wake();
}

ReportThreads& ReportThreads::Get() {
  static ReportThreads* const threads = new ReportThreads;
  return *threads;
}

aclError ReportThreads::Join(uint64_t thread_id, const Device& device, uint64_t subscription,
                             std::shared_ptr<ReportThread>* thread) {
  MutexLock lock(mutex_);
  const auto found = threads_.find(thread_id);
  if (found == threads_.end()) {
    if (threads_.size() >= kMaxThreads) {
      return Fail(ACL_ERROR_RT_OVER_LIMIT, kExhausted,
                  Concat("there are ", kMaxThreads, " callback threads, which is the limit"));
    }
    *thread = std::make_shared<ReportThread>();
    (*thread)->id = thread_id;
    (*thread)->device = &device;
    threads_.emplace(thread_id, *thread);
  } else if (found->second->device != &device) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
                Concat("threadId serves streams of device ", found->second->device->id()));
  } else {
    *thread = found->second;
  }
  (*thread)->subscriptions.insert(subscription);
  return ACL_SUCCESS;
}

void ReportThreads::Leave(ReportThread& thread, uint64_t subscription) {
  std::vector<std::shared_ptr<Callback>> dropped;
  {
    MutexLock lock(mutex_);
    thread.subscriptions.erase(subscription);
    std::erase_if(thread.due, [&](const std::shared_ptr<Callback>& callback) {
      if (callback->subscription() != subscription) return false;
      dropped.push_back(callback);
      return true;
    });
    if (thread.subscriptions.empty()) {
      threads_.erase(thread.id);
      thread.changed.NotifyAll();
    }
  }
  for (const std::shared_ptr<Callback>& callback : dropped) callback->Drop();
}

void ReportThreads::Post(ReportThread& thread, std::shared_ptr<Callback> callback) {
  {
    MutexLock lock(mutex_);
    if (thread.subscriptions.count(callback->subscription()) > 0) {
      thread.due.push_back(std::move(callback));
      thread.changed.NotifyAll();
      return;
    }
  }
  callback->Drop();
}

aclError ReportThreads::Process(uint64_t thread_id, Deadline deadline) {
  std::deque<std::shared_ptr<Callback>> due;
  {
    MutexLock lock(mutex_);
    const auto found = threads_.find(thread_id);
    const std::shared_ptr<ReportThread> thread = found == threads_.end() ? nullptr : found->second;
    bool in_time = true;
    while (thread != nullptr && thread->due.empty() && !thread->subscriptions.empty() && in_time) {
      in_time = thread->changed.Wait(mutex_, deadline);
    }
    if (thread == nullptr || thread->subscriptions.empty()) {
      return Fail(ACL_ERROR_RT_THREAD_SUBSCRIBE, kCallOrder,
                  "this thread is not subscribed: call aclrtSubscribeReport");
    }
    if (thread->due.empty()) {
      return Fail(ACL_ERROR_RT_REPORT_TIMEOUT, kSyncTimeout, "no callback came before the timeout");
    }
    due.swap(thread->due);
  }
  for (const std::shared_ptr<Callback>& callback : due) callback->Run();
  return ACL_SUCCESS;
}

aclError ReportSubscription::Start(uint64_t thread_id, const Device& device,
                                   std::shared_ptr<ReportSubscription>* subscription) {
  static std::atomic<uint64_t> next_number{1};
  const uint64_t number = next_number++;
  std::shared_ptr<ReportThread> thread;
  RETURN_IF_FAILED(ReportThreads::Get().Join(thread_id, device, number, &thread));
  subscription->reset(new ReportSubscription(std::move(thread), number));
  return ACL_SUCCESS;
}

}  // namespace opserve::host_cann
