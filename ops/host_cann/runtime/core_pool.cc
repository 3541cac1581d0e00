#include "ops/host_cann/runtime/core_pool.h"

#include <algorithm>
#include <system_error>
#include <thread>

#include "ops/host_cann/runtime/compute_thread.h"

namespace opserve::host_cann {

void CorePool::StartHelpers() {
  // With the first use, so that processes without large kernels have no helpers.
  if (started_) return;
  started_ = true;
  try {
    // Detached and never ended: the pool lives as long as the process.
    for (int i = 0; i < num_helpers_; ++i) std::thread([this] { Help(); }).detach();
  } catch (const std::system_error&) {
    // With fewer helpers the callers do more themselves.
  }
}

void CorePool::RunFor(const TaskRunner& runner, int64_t num_tasks,
                      void (*task)(void* context, int64_t index), void* context) {
  Batch batch{runner, num_tasks, task, context};
  // One task needs no helper, and a wake-up costs more than most.
  if (num_tasks <= 1 || num_helpers_ == 0) return batch.Work();
  {
    MutexLock lock(mutex_);
    StartHelpers();
    batches_.push_back(&batch);
    // The caller takes one task itself.
    const int64_t useful = std::min<int64_t>(num_tasks - 1, num_helpers_);
    for (int64_t i = 0; i < useful; ++i) batch_arrived_.NotifyOne();
  }
  batch.Work();
  // Nothing is left to begin, but helpers may be at their last tasks.
  MutexLock lock(mutex_);
  // Out of the list before the wait: no further helper finds the batch, which is on this stack.
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
    // The oldest first. Helpers stay with a batch until it has nothing to start.
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
