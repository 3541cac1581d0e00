// The members of aclOpExecutor. Only inside libnnopbase.so.
#pragma once

#include <atomic>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "ops/host_cann/nnopbase/executor.h"
#include "ops/host_cann/runtime/mutex.h"

// Thread-safe: a repeatable executor may get a new address in one thread while stage two runs in
// another one.
struct aclOpExecutor {
  explicit aclOpExecutor(opserve::host_cann::ExecutorPlan plan)
      : function(plan.function),
        kernel(std::move(plan.kernel)),
        work(plan.work),
        inputs(std::move(plan.inputs)),
        outputs(std::move(plan.outputs)) {}

  size_t workspace_bytes() const { return kernel == nullptr ? 0 : kernel->workspace_bytes(); }

  const char* const function;
  const std::shared_ptr<const opserve::kernels::Kernel> kernel;
  const uint64_t work;
  std::atomic<bool> is_repeatable = false;

  opserve::host_cann::Mutex mutex;
  std::vector<opserve::host_cann::OperandGroup> inputs ABSL_GUARDED_BY(mutex);
  std::vector<opserve::host_cann::OperandGroup> outputs ABSL_GUARDED_BY(mutex);
};
