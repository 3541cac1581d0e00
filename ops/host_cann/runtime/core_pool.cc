#include "ops/host_cann/runtime/core_pool.h"

#include <algorithm>
#include <system_error>
#include <thread>

#include "ops/host_cann/runtime/compute_thread.h"

namespace opserve::host_cann {

void CorePool::StartHelpers() {
  if (started_) return;
  started_ = true;
  try {
    for (int i = 0; i < num_helpers_; ++i) std::thread([this] { Help(); }).detach();
  } catch (const std::system_error&) {
    // With fewer helpers the callers do more themselves.
  }
}

void CorePool::RunFor(const TaskRunner& runner, int64_t num_tasks,
                      void (*task)(void* context, int64_t index), void* context) {
  Batch batch{runner, num_tasks, task, context};
  if (num_tasks <= 1 || num_helpers_ == 0) return batch.Work();
  {
    MutexLock lock(mutex_);
    StartHelpers();
    batches_.push_back(&batch);
    const int64_t useful = std::min<int64_t>(num_tasks - 1, num_helpers_);
    for (int64_t i = 0; i < useful; ++i) batch_arrived_.NotifyOne();
  }
  batch.Work();
  MutexLock lock(mutex_);
  std::erase(batches_, &batch);
  while (batch.helpers > 0) helper_left_.Wait(mutex_);
}

void CorePool::Help() {
  BeginComputeThread("cann-core");
  MutexLock lock(mutex_);
  for (;;) {
    if (batches_.empty()) {
      batch_arrived_.Wait(mutex_);
      continue;
    }
    Batch* const batch = batches_.front();
    ++batch->helpers;
    mutex_.Unlock();
    batch->Work();
    mutex_.Lock();
    // Nothing is left to start; the caller may have noticed first.
    std::erase(batches_, batch);
    if (--batch->helpers == 0) helper_left_.NotifyAll();
  }
}

}  // namespace opserve::host_cann
