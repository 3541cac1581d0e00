// The cores of one device: threads that share the work of its streams' kernels.
#pragma once

#include <atomic>
#include <vector>

#include "kernels/cpu/kernel.h"
#include "ops/host_cann/runtime/mutex.h"

namespace opserve::host_cann {

// Run may be called from several threads at once; each caller works on its own tasks, and the
// helpers on whichever are left. A single task runs on the caller without waking anyone. Helpers
// are started with the first call that has use for them and live as long as the process.
class CorePool final : public kernels::TaskRunner {
 public:
  // `num_cores`: threads that may work at once for one caller, itself included.
  explicit CorePool(int num_cores) : num_helpers_(num_cores - 1) {}

  void Run(int64_t num_tasks, void (*task)(void* context, int64_t index), void* context) override {
    RunFor(*this, num_tasks, task, context);
  }
  // The same for another runner, which uses these cores: once it must stop, no task begins any
  // more, and the call returns when those that have begun have returned.
  void RunFor(const TaskRunner& runner, int64_t num_tasks,
              void (*task)(void* context, int64_t index), void* context)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Batch {
    const TaskRunner& runner;
    const int64_t num_tasks;
    void (*const task)(void* context, int64_t index);
    void* const context;
    std::atomic<int64_t> next{0};
    int helpers = 0;  // working on it; guarded by the pool's mutex

    void Work() {
      for (int64_t i = next++; i < num_tasks && !runner.MustStop(); i = next++) task(context, i);
    }
  };

  void StartHelpers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Help() ABSL_LOCKS_EXCLUDED(mutex_);

  const int num_helpers_;
  Mutex mutex_;
  CondVar batch_arrived_;
  CondVar helper_left_;
  std::vector<Batch*> batches_ ABSL_GUARDED_BY(mutex_);  // with tasks left when last looked at
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace opserve::host_cann
