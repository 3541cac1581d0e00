// Giving an executor's tensors other addresses.
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "aclnn/opdev/op_errno.h"
#include "ops/host_cann/nnopbase/attributes.h"
#include "ops/host_cann/nnopbase/executor_state.h"
#include "ops/host_cann/nnopbase/live_handles.h"
#include "ops/host_cann/nnopbase/status.h"

namespace opserve::host_cann {
namespace {

// The tensors that an index counts.
enum class Operands { kInputs, kOutputs, kAll };

// The executor of a call, which must be alive, with a tensor that must not be null; null with
// `*status` set if the call cannot go on.
std::shared_ptr<aclOpExecutor> Enter(const char* function, aclOpExecutor* executor,
                                     const void* tensor, aclnnStatus* status) {
  *status = EnterCall(function);
  if (*status != ACLNN_SUCCESS) return nullptr;
  std::shared_ptr<aclOpExecutor> live = FindHandle(executor);
  // 561103 for a null of either, by the vendor's document.
  if (live == nullptr || tensor == nullptr) {
    *status = Fail(ACLNN_ERR_INNER_NULLPTR,
                   absl::StrCat(function, ": an argument is null, or the executor not alive"));
    return nullptr;
  }
  return live;
}

// The parameter that `index` counts; null: there is none.
OperandGroup* FindParameter(aclOpExecutor& executor, Operands operands, size_t index)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(executor.mutex) {
  if (operands != Operands::kOutputs) {
    if (index < executor.inputs.size()) return &executor.inputs[index];
    if (operands == Operands::kInputs) return nullptr;
    // kAll counts the inputs first, then the outputs.
    index -= executor.inputs.size();
  }
  if (index >= executor.outputs.size()) return nullptr;
  OperandGroup& output = executor.outputs[index];
  // The output of an operator in place is the input's memory: one address for both.
  return output.input ? &executor.inputs[*output.input] : &output;
}

aclnnStatus SetAddress(const char* function, aclOpExecutor* executor, Operands operands,
                       size_t index, const aclTensor* tensor, void* address) {
  aclnnStatus status;
  const auto live = Enter(function, executor, tensor, &status);
  if (live == nullptr) return status;
  const std::shared_ptr<aclTensor> descriptor = FindHandle(tensor);
  if (descriptor == nullptr) {
    return Fail(ACLNN_ERR_PARAM_INVALID, absl::StrCat(function, ": argument tensor is not alive"));
  }

  MutexLock lock(live->mutex);
  OperandGroup* const parameter = FindParameter(*live, operands, index);
  // A list has functions of its own, and a parameter that was null has no address to change.
  if (parameter == nullptr || parameter->is_list || parameter->operands.empty()) {
    return Fail(ACLNN_ERR_PARAM_INVALID,
                absl::StrCat(function, ": argument index: ", index, ", but ", live->function,
                             " has ", live->inputs.size(), " inputs and ", live->outputs.size(),
                             " outputs, and this one is a list or null, or there is none"));
  }
  // Both: the executor for its next stage two, the descriptor for its readers.
  parameter->operands.front().data = address;
  descriptor->data = address;
  return ACLNN_SUCCESS;
}

aclnnStatus SetListAddress(const char* function, aclOpExecutor* executor, Operands operands,
                           size_t parameter_index, size_t index, const aclTensorList* tensors,
                           void* address) {
  aclnnStatus status;
  const auto live = Enter(function, executor, tensors, &status);
  if (live == nullptr) return status;

  MutexLock lock(live->mutex);
  OperandGroup* const parameter = FindParameter(*live, operands, parameter_index);
  if (parameter == nullptr || !parameter->is_list) {
    return Fail(ACLNN_ERR_PARAM_INVALID,
                absl::StrCat(function, ": argument irIndex: parameter ", parameter_index, " of ",
                             live->function, " is not a tensor list"));
  }
  if (index >= parameter->operands.size()) {
    return Fail(ACLNN_ERR_PARAM_INVALID,
                absl::StrCat(function, ": argument relativeIndex: ", index, ", but the list has ",
                             parameter->operands.size(), " tensors"));
  }
  const std::shared_ptr<aclTensor> descriptor = FindListTensor(tensors, index);
  // Looked up although the executor has the operand: the caller's list must still be alive.
  if (descriptor == nullptr) {
    return Fail(ACLNN_ERR_PARAM_INVALID,
                absl::StrCat(function, ": argument tensors: has no live tensor ", index));
  }
  parameter->operands[index].data = address;
  descriptor->data = address;
  return ACLNN_SUCCESS;
}

}  // namespace
}  // namespace opserve::host_cann

using opserve::host_cann::Operands;
using opserve::host_cann::SetAddress;
using opserve::host_cann::SetListAddress;

aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                  void* addr) {
  return SetAddress(__func__, executor, Operands::kInputs, index, tensor, addr);
}

aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                   void* addr) {
  return SetAddress(__func__, executor, Operands::kOutputs, index, tensor, addr);
}

aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                             void* addr) {
  return SetAddress(__func__, executor, Operands::kAll, index, tensor, addr);
}

// The vendor's older names with a capital A, kept for programs that use them.
aclnnStatus AclSetInputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                  void* addr) {
  return SetAddress(__func__, executor, Operands::kInputs, index, tensor, addr);
}

aclnnStatus AclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                   void* addr) {
  return SetAddress(__func__, executor, Operands::kOutputs, index, tensor, addr);
}

aclnnStatus AclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                             void* addr) {
  return SetAddress(__func__, executor, Operands::kAll, index, tensor, addr);
}

aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                         const size_t relativeIndex, aclTensorList* tensors,
                                         void* addr) {
  return SetListAddress(__func__, executor, Operands::kInputs, irIndex, relativeIndex, tensors,
                        addr);
}

aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                          const size_t relativeIndex, aclTensorList* tensors,
                                          void* addr) {
  return SetListAddress(__func__, executor, Operands::kOutputs, irIndex, relativeIndex, tensors,
                        addr);
}

aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                    const size_t relativeIndex, aclTensorList* tensors,
                                    void* addr) {
  return SetListAddress(__func__, executor, Operands::kAll, irIndex, relativeIndex, tensors, addr);
}

aclnnStatus AclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                         const size_t relativeIndex, aclTensorList* tensors,
                                         void* addr) {
  return SetListAddress(__func__, executor, Operands::kInputs, irIndex, relativeIndex, tensors,
                        addr);
}

aclnnStatus AclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                          const size_t relativeIndex, aclTensorList* tensors,
                                          void* addr) {
  return SetListAddress(__func__, executor, Operands::kOutputs, irIndex, relativeIndex, tensors,
                        addr);
}

aclnnStatus AclSetDynamicTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                    const size_t relativeIndex, aclTensorList* tensors,
                                    void* addr) {
  return SetListAddress(__func__, executor, Operands::kAll, irIndex, relativeIndex, tensors, addr);
}
