// aclnnKlDivTargetBackward for the custom package: checks, contiguous copies, the kernel, the copy
// into the caller's view. Compiled by the vendor's toolchain only (package/); what is refused is
// decided by op_host/checks.h.
//
// The toolkit can generate such functions from the operator's definition, but those refuse wrong
// shapes with internal codes of the tiling (561xxx) where the operator promises 161002.
#include "../op_host/checks.h"

#include <cstdint>
#include <optional>

#include "aclnn_kernels/contiguous.h"
#include "aclnn_kernels/transdata.h"
#include "aclnn_kl_div_target_backward.h"
#include "opdev/make_op_executor.h"
#include "opdev/op_def.h"
#include "opdev/op_dfx.h"
#include "opdev/op_executor.h"
#include "opdev/op_log.h"

namespace l0op {

OP_TYPE_REGISTER(KlDivTargetBackward);

// Launches the kernel on contiguous inputs. Its output, contiguous, of target's shape and dtype;
// null on failure. The name of the last parameter is the one that the macros want.
static const aclTensor* KlDivTargetBackward(const aclTensor* grad_output, const aclTensor* self,
                                            const aclTensor* target, int64_t reduction,
                                            bool log_target, aclOpExecutor* executor) {
  L0_DFX(KlDivTargetBackward, grad_output, self, target, reduction, log_target);
  const aclTensor* out =
      executor->AllocTensor(target->GetViewShape(), target->GetDataType(), op::Format::FORMAT_ND);
  if (out == nullptr) return nullptr;
  const auto status =
      ADD_TO_LAUNCHER_LIST_AICORE(KlDivTargetBackward, OP_INPUT(grad_output, self, target),
                                  OP_OUTPUT(out), OP_ATTR(reduction, log_target));
  return status == ACLNN_SUCCESS ? out : nullptr;
}

}  // namespace l0op

namespace {

using opserve::ascendc::Argument;
using opserve::ascendc::Verdict;

std::optional<Argument> ArgumentOf(const aclTensor* tensor) {
  if (tensor == nullptr) return std::nullopt;
  Argument argument;
  argument.dtype = static_cast<int32_t>(tensor->GetDataType());
  argument.format =
      static_cast<int32_t>(tensor->GetStorageFormat()) & 0xFF;  // above: how its blocks are cut
  for (size_t dim = 0; dim < tensor->GetViewShape().GetDimNum(); ++dim) {
    argument.shape.push_back(tensor->GetViewShape().GetDim(dim));
  }
  return argument;
}

const Argument* PointerTo(const std::optional<Argument>& argument) {
  return argument ? &*argument : nullptr;
}

// As the kernel takes it: contiguous, ND. Null on failure.
const aclTensor* Prepare(const aclTensor* tensor, aclOpExecutor* executor) {
  const aclTensor* contiguous = l0op::Contiguous(tensor, executor);
  return contiguous == nullptr ? nullptr : l0op::ReFormat(contiguous, op::Format::FORMAT_ND);
}

// Queues everything on `executor`.
aclnnStatus Compute(const aclTensor* grad_output, const aclTensor* self, const aclTensor* target,
                    int64_t reduction, bool log_target, aclTensor* grad_target,
                    aclOpExecutor* executor) {
  const aclTensor* prepared_grad_output = Prepare(grad_output, executor);
  const aclTensor* prepared_self = Prepare(self, executor);
  const aclTensor* prepared_target = Prepare(target, executor);
  if (prepared_grad_output == nullptr || prepared_self == nullptr || prepared_target == nullptr) {
    return ACLNN_ERR_INNER_NULLPTR;
  }
  const aclTensor* out = l0op::KlDivTargetBackward(
      prepared_grad_output, prepared_self, prepared_target, reduction, log_target, executor);
  if (out == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  const aclTensor* formatted = l0op::ReFormat(out, grad_target->GetViewFormat());
  if (formatted == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  return l0op::ViewCopy(formatted, grad_target, executor) == nullptr ? ACLNN_ERR_INNER_NULLPTR
                                                                     : ACLNN_SUCCESS;
}

}  // namespace

extern "C" {

aclnnStatus aclnnKlDivTargetBackwardGetWorkspaceSize(const aclTensor* gradOutput,
                                                     const aclTensor* self, const aclTensor* target,
                                                     int64_t reduction, bool logTarget,
                                                     aclTensor* gradTarget, uint64_t* workspaceSize,
                                                     aclOpExecutor** executor) {
  L2_DFX_PHASE_1(aclnnKlDivTargetBackward, DFX_IN(gradOutput, self, target, reduction, logTarget),
                 DFX_OUT(gradTarget));
  const std::optional<Argument> arguments[] = {ArgumentOf(gradOutput), ArgumentOf(self),
                                               ArgumentOf(target), ArgumentOf(gradTarget)};
  opserve::ascendc::Call call;
  call.has_workspace_size = workspaceSize != nullptr;
  call.has_executor = executor != nullptr;
  call.grad_output = PointerTo(arguments[0]);
  call.self = PointerTo(arguments[1]);
  call.target = PointerTo(arguments[2]);
  call.grad_target = PointerTo(arguments[3]);
  const opserve::ascendc::Checked checked = opserve::ascendc::CheckCall(call);
  if (checked.verdict == Verdict::kNullPointer) {
    OP_LOGE(ACLNN_ERR_PARAM_NULLPTR, "aclnnKlDivTargetBackward: %s", checked.message.c_str());
    return ACLNN_ERR_PARAM_NULLPTR;
  }
  if (checked.verdict == Verdict::kInvalid) {
    OP_LOGE(ACLNN_ERR_PARAM_INVALID, "aclnnKlDivTargetBackward: %s", checked.message.c_str());
    return ACLNN_ERR_PARAM_INVALID;
  }
  auto unique_executor = CREATE_EXECUTOR();
  if (unique_executor.get() == nullptr) return ACLNN_ERR_INNER_CREATE_EXECUTOR;
  *workspaceSize = 0;
  if (checked.verdict == Verdict::kCompute && !gradTarget->IsEmpty()) {
    const aclnnStatus status =
        Compute(gradOutput, self, target, reduction, logTarget, gradTarget, unique_executor.get());
    if (status != ACLNN_SUCCESS) return status;
    *workspaceSize = unique_executor->GetWorkspaceSize();
  }
  unique_executor.ReleaseTo(executor);
  return ACLNN_SUCCESS;
}

aclnnStatus aclnnKlDivTargetBackward(void* workspace, uint64_t workspaceSize,
                                     aclOpExecutor* executor, aclrtStream stream) {
  L2_DFX_PHASE_2(aclnnKlDivTargetBackward);
  return CommonOpExecutorRun(workspace, workspaceSize, executor, stream);
}

}  // extern "C"
