#include "ops/host_cann/runtime/report_threads.h"

#include <utility>
#include <vector>

#include "ops/host_cann/runtime/device.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/stream.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {

void Callback::Run() {
  function_(user_data_);
  state_.store(State::kFinished, std::memory_order_release);
  // The stream's task may block on it.
  stream_->Wake();
}

void Callback::Drop() {
  // Wakes for a drop too: the blocked task looks and ends.
  if (Leave(State::kPending, State::kFinished)) stream_->Wake();
}

ReportThreads& ReportThreads::Get() {
  // Leaked: threads may be inside Process when static objects are destroyed.
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
    // Found by its id from now on. The id is a number that the program gives; no thread needs to
    // exist.
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
  // Dropped outside the lock: Drop wakes streams, which takes their locks.
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
      // A thread inside Process finds that it serves no stream any more, and returns 107012.
      threads_.erase(thread.id);
      thread.changed.NotifyAll();
    }
  }
  for (const std::shared_ptr<Callback>& callback : dropped) callback->Drop();
}

void ReportThreads::Post(ReportThread& thread, std::shared_ptr<Callback> callback) {
  {
    MutexLock lock(mutex_);
    // The stream may have been unsubscribed between the look at its subscription and this.
    if (thread.subscriptions.count(callback->subscription()) > 0) {
      thread.due.push_back(std::move(callback));
      thread.changed.NotifyAll();
      return;
    }
  }
  // As if it had been due when the subscription ended.
  callback->Drop();
}

aclError ReportThreads::Process(uint64_t thread_id, Deadline deadline) {
  // Shared: the entry may leave the table while this thread waits on its condition.
  std::shared_ptr<ReportThread> thread;
  size_t num_due = 0;
  {
    MutexLock lock(mutex_);
    const auto found = threads_.find(thread_id);
    if (found != threads_.end()) thread = found->second;
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
    num_due = thread->due.size();
  }
  // One by one, so that the end of a subscription still drops those that have not begun. They run
  // without the lock, as they may subscribe or unsubscribe.
  for (; num_due > 0; --num_due) {
    std::shared_ptr<Callback> callback;
    {
      MutexLock lock(mutex_);
      if (thread->due.empty()) break;
      callback = std::move(thread->due.front());
      thread->due.pop_front();
      // Under the lock: after the end of its subscription none begins.
      if (!callback->Begin()) continue;
    }
    callback->Run();
  }
  return ACL_SUCCESS;
}

aclError ReportSubscription::Start(uint64_t thread_id, const Device& device,
                                   std::shared_ptr<ReportSubscription>* subscription) {
  static std::atomic<uint64_t> next_number{1};
  // Numbers are never used again, so callbacks of an ended subscription match no later one.
  const uint64_t number = next_number++;
  std::shared_ptr<ReportThread> thread;
  RETURN_IF_FAILED(ReportThreads::Get().Join(thread_id, device, number, &thread));
  subscription->reset(new ReportSubscription(std::move(thread), number));
  return ACL_SUCCESS;
}

}  // namespace opserve::host_cann
