// Giving an executor's tensors other addresses.
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "aclnn/opdev/op_errno.h"
#include "ops/host_cann/nnopbase/executor_state.h"
#include "ops/host_cann/nnopbase/live_handles.h"
#include "ops/host_cann/nnopbase/status.h"

namespace opserve::host_cann {
namespace {

// The tensors that an index counts.
enum class Operands { kInputs, kOutputs, kAll };

// The executor of a call whose pointers must not be null; null with `*status` set if it cannot go
// on.
std::shared_ptr<aclOpExecutor> Enter(const char* function, aclOpExecutor* executor,
                                     const void* tensor, const void* address, aclnnStatus* status) {
  *status = EnterCall(function);
  if (*status != ACLNN_SUCCESS) return nullptr;
  std::shared_ptr<aclOpExecutor> live = FindHandle(executor);
  if (live == nullptr || tensor == nullptr || address == nullptr) {
    *status = Fail(ACLNN_ERR_INNER_NULLPTR,
                   absl::StrCat(function, ": an argument is null, or the executor not alive"));
    return nullptr;
  }
  return live;
}

aclnnStatus SetAddress(const char* function, aclOpExecutor* executor, Operands operands,
                       size_t index, const aclTensor* tensor, void* address) {
  aclnnStatus status;
  const auto live = Enter(function, executor, tensor, address, &status);
  if (live == nullptr) return status;

  MutexLock lock(live->mutex);
  const size_t num_inputs = operands == Operands::kOutputs ? 0 : live->inputs.size();
  const size_t num_outputs = operands == Operands::kInputs ? 0 : live->outputs.size();
  if (index >= num_inputs + num_outputs) {
    return Fail(ACLNN_ERR_PARAM_INVALID,
                absl::StrCat(function, ": argument index: ", index, ", but ", live->function,
                             " has ", num_inputs + num_outputs, " of these tensors"));
  }
  Operand& operand = index < num_inputs ? live->inputs[index] : live->outputs[index - num_inputs];
  operand.data = address;
  return ACLNN_SUCCESS;
}

// No operator here has a tensor list among its parameters, so every index is out of range.
aclnnStatus SetListAddress(const char* function, aclOpExecutor* executor, size_t parameter_index,
                           const aclTensorList* tensors, void* address) {
  aclnnStatus status;
  const auto live = Enter(function, executor, tensors, address, &status);
  if (live == nullptr) return status;
  return Fail(ACLNN_ERR_PARAM_INVALID,
              absl::StrCat(function, ": argument irIndex: parameter ", parameter_index, " of ",
                           live->function, " is not a tensor list"));
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

aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t irIndex, const size_t,
                                         aclTensorList* tensors, void* addr) {
  return SetListAddress(__func__, executor, irIndex, tensors, addr);
}

aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t irIndex, const size_t,
                                          aclTensorList* tensors, void* addr) {
  return SetListAddress(__func__, executor, irIndex, tensors, addr);
}

aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor* executor, size_t irIndex, const size_t,
                                    aclTensorList* tensors, void* addr) {
  return SetListAddress(__func__, executor, irIndex, tensors, addr);
}

aclnnStatus AclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t irIndex, const size_t,
                                         aclTensorList* tensors, void* addr) {
  return SetListAddress(__func__, executor, irIndex, tensors, addr);
}

aclnnStatus AclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t irIndex, const size_t,
                                          aclTensorList* tensors, void* addr) {
  return SetListAddress(__func__, executor, irIndex, tensors, addr);
}

aclnnStatus AclSetDynamicTensorAddr(aclOpExecutor* executor, size_t irIndex, const size_t,
                                    aclTensorList* tensors, void* addr) {
  return SetListAddress(__func__, executor, irIndex, tensors, addr);
}
