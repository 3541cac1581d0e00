#include "ops/host_cann/nnopbase/executor.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "aclnn/opdev/op_errno.h"
#include "ops/host_cann/nnopbase/executor_state.h"
#include "ops/host_cann/nnopbase/live_handles.h"
#include "ops/host_cann/nnopbase/status.h"

namespace opserve::host_cann {
namespace {

// That of aclrtMalloc. Kernels lay out the workspace with types of up to this alignment.
constexpr uintptr_t kWorkspaceAlignment = 64;

// Where the view of `operand` begins, added to `launch`'s ranges if anything of it is accessed.
aclnnStatus ResolveOperand(const char* function, const Operand& operand, KernelLaunch* launch,
                           void** address) {
  // An operand without bytes to access needs no address: empty tensors may be null.
  *address = operand.data;
  if (operand.byte_extent == 0) return ACLNN_SUCCESS;
  if (operand.data == nullptr) {
    return Fail(ACLNN_ERR_PARAM_NULLPTR,
                absl::StrCat(function, ": argument ", operand.name, ": the address is null"));
  }
  uintptr_t begin = 0;
  uintptr_t end = 0;
  // The offset may be of a view that no allocation holds; the sum is checked, the memory later,
  // when the kernel runs.
  if (__builtin_add_overflow(reinterpret_cast<uintptr_t>(operand.data), operand.byte_offset,
                             &begin) ||
      __builtin_add_overflow(begin, operand.byte_extent, &end)) {
    return Fail(ACLNN_ERR_PARAM_INVALID, absl::StrCat(function, ": argument ", operand.name,
                                                      ": the view leaves the address range"));
  }
  // Kernels access elements as typed values.
  if (begin % operand.element_bytes != 0) {
    return Fail(ACLNN_ERR_PARAM_INVALID,
                absl::StrCat(function, ": argument ", operand.name,
                             ": the address is not a multiple of ", operand.element_bytes));
  }
  *address = reinterpret_cast<void*>(begin);
  launch->ranges.push_back({*address, static_cast<size_t>(operand.byte_extent), operand.name});
  return ACLNN_SUCCESS;
}

aclnnStatus CheckWorkspace(const char* function, const void* workspace, uint64_t workspace_size,
                           size_t needed) {
  if (workspace_size < needed) {
    return Fail(ACLNN_ERR_PARAM_INVALID,
                absl::StrCat(function, ": argument workspaceSize: ", workspace_size,
                             " bytes are less than the ", needed, " reported"));
  }
  // Where nothing is needed, any pointer is taken, null too.
  if (needed > 0 && reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAlignment != 0) {
    return Fail(ACLNN_ERR_PARAM_INVALID,
                absl::StrCat(function, ": argument workspace: the address is not a multiple of ",
                             kWorkspaceAlignment));
  }
  return ACLNN_SUCCESS;
}

aclnnStatus Launch(const char* function, aclOpExecutor& executor, void* workspace,
                   uint64_t workspace_size, aclrtStream stream) {
  const size_t workspace_bytes = executor.workspace_bytes();
  aclnnStatus status = CheckWorkspace(function, workspace, workspace_size, workspace_bytes);
  // An executor of an empty call: its arguments are not looked at.
  if (status != ACLNN_SUCCESS || executor.kernel == nullptr) return status;

  KernelLaunch launch;
  launch.name = executor.function;
  launch.work = executor.work;
  absl::InlinedVector<const void*, 6> inputs;
  absl::InlinedVector<void*, 2> outputs;
  {
    // The addresses of this moment, together: aclSetTensorAddr may run on another thread.
    MutexLock lock(executor.mutex);
    launch.ranges.reserve(executor.inputs.size() + executor.outputs.size() + 1);
    for (const OperandGroup& group : executor.inputs) {
      for (const Operand& operand : group.operands) {
        void* address = nullptr;
        status = ResolveOperand(function, operand, &launch, &address);
        if (status != ACLNN_SUCCESS) return status;
        inputs.push_back(address);
      }
    }
    for (const OperandGroup& group : executor.outputs) {
      // In place: the input's operands. Either index may have changed their address.
      const OperandGroup& written = group.input ? executor.inputs[*group.input] : group;
      for (const Operand& operand : written.operands) {
        void* address = nullptr;
        status = ResolveOperand(function, operand, &launch, &address);
        if (status != ACLNN_SUCCESS) return status;
        // For injected faults, which invert the first output.
        if (outputs.empty()) launch.output_bytes = static_cast<size_t>(operand.byte_extent);
        outputs.push_back(address);
      }
    }
  }
  if (!outputs.empty()) launch.output = outputs.front();
  if (workspace_bytes > 0) launch.ranges.push_back({workspace, workspace_bytes, "workspace"});

  // The executor may be gone when the kernel runs: the work holds its own share of the kernel.
  launch.run = [kernel = executor.kernel, inputs = std::move(inputs), outputs = std::move(outputs),
                workspace](kernels::TaskRunner& cores) {
    kernel->Run(inputs.data(), outputs.data(), workspace, cores);
  };
  return LaunchKernel(stream, std::move(launch)) == ACL_SUCCESS ? ACLNN_SUCCESS
                                                                : ACLNN_ERR_RUNTIME_ERROR;
}

}  // namespace

// Bytes cannot overflow: a tensor's extents are bounded for every element size.
Operand MakeOperand(const char* name, const aclTensor& tensor) {
  const auto element_bytes = static_cast<int64_t>(aclDataTypeSize(tensor.dtype));
  return {name, tensor.data, tensor.offset * element_bytes, tensor.extent() * element_bytes,
          element_bytes};
}

Operand MakeUnreadOperand(const char* name, const aclTensor& tensor) {
  Operand operand = MakeOperand(name, tensor);
  operand.byte_extent = 0;
  return operand;
}

aclnnStatus CreateExecutor(ExecutorPlan plan, uint64_t* workspace_size, aclOpExecutor** executor) {
  auto created = std::make_unique<aclOpExecutor>(std::move(plan));
  *workspace_size = created->workspace_bytes();
  *executor = AddHandle(std::move(created));
  return ACLNN_SUCCESS;
}

aclnnStatus RunStageTwo(const char* function, void* workspace, uint64_t workspace_size,
                        aclOpExecutor* executor, aclrtStream stream) {
  // Counted and injected before the checks, but an injected failure must free the executor as any
  // failure does.
  const aclnnStatus injected = EnterCall(function);
  if (executor == nullptr) {
    return Fail(ACLNN_ERR_PARAM_NULLPTR, absl::StrCat(function, ": argument executor is null"));
  }
  const std::shared_ptr<aclOpExecutor> live = FindHandle(executor);
  const bool no_workspace = workspace == nullptr && workspace_size > 0;
  // Without a workspace the vendor destroys repeatable executors as well.
  const bool ends_here = live != nullptr && (no_workspace || !live->is_repeatable);
  // Removed before it runs: of two threads with one executor the second finds it gone.
  if (live == nullptr || (ends_here && !RemoveHandle(executor))) {
    return Fail(ACLNN_ERR_INNER_NULLPTR,
                absl::StrCat(function, ": argument executor is not alive"));
  }
  if (injected != ACLNN_SUCCESS) return injected;
  if (no_workspace) {
    return Fail(ACLNN_ERR_PARAM_NULLPTR, absl::StrCat(function, ": argument workspace is null"));
  }
  return Launch(function, *live, workspace, workspace_size, stream);
}

}  // namespace opserve::host_cann

using opserve::host_cann::EnterCall;
using opserve::host_cann::Fail;
using opserve::host_cann::FindHandle;
using opserve::host_cann::RemoveHandle;

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  if (const aclnnStatus injected = EnterCall(__func__); injected != ACLNN_SUCCESS) return injected;
  const std::shared_ptr<aclOpExecutor> live = FindHandle(executor);
  if (live == nullptr) {
    return Fail(ACLNN_ERR_INNER_NULLPTR,
                "aclSetAclOpExecutorRepeatable: argument executor is null or not alive");
  }
  // Every executor here can be repeated: no operator copies data of the host.
  live->is_repeatable = true;
  return ACLNN_SUCCESS;
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  if (const aclnnStatus injected = EnterCall(__func__); injected != ACLNN_SUCCESS) return injected;
  if (RemoveHandle(executor)) return ACLNN_SUCCESS;
  return Fail(ACLNN_ERR_INNER_NULLPTR,
              "aclDestroyAclOpExecutor: argument executor is null or not alive");
}
