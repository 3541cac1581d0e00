#include "aclnnop/aclnn_l1_loss_backward.h"

#include <utility>

#include "ops/host_cann/nnopbase/executor.h"
#include "ops/host_cann/opapi/checks.h"
#include "ops/host_cann/opapi/plan.h"

using opserve::host_cann::Argument;
using opserve::host_cann::CreateExecutor;
using opserve::host_cann::ExecutorPlan;
using opserve::host_cann::kNoReduction;
using opserve::host_cann::kSumReduction;
using opserve::host_cann::MakeLayout;
using opserve::host_cann::MakeOperand;
using opserve::host_cann::ReductionDivisor;
using opserve::host_cann::RunStageTwo;
using opserve::host_cann::Shape;
using opserve::host_cann::StageOneChecks;

aclnnStatus aclnnL1LossBackwardGetWorkspaceSize(const aclTensor* gradOutput, const aclTensor* self,
                                                const aclTensor* target, int64_t reduction,
                                                aclTensor* gradInput, uint64_t* workspaceSize,
                                                aclOpExecutor** executor) {
  Argument grad_argument{"gradOutput", gradOutput};
  Argument self_argument{"self", self};
  Argument target_argument{"target", target};
  Argument out_argument{"gradInput", gradInput};

  StageOneChecks checks("L1LossBackward", __func__);
  checks.Results(workspaceSize, executor);
  checks.Tensors({&grad_argument, &self_argument, &target_argument, &out_argument});
  if (!checks.ok()) return checks.status();

  checks.InRange("reduction", reduction, kNoReduction, kSumReduction);
  const aclDataType common = checks.Promote({&grad_argument, &self_argument, &target_argument});
  checks.Castable(common, out_argument);
  checks.TensorType(out_argument);
  checks.RankAtMost8({&self_argument, &target_argument, &grad_argument, &out_argument});
  Shape shape = checks.Broadcast(self_argument, grad_argument->shape, "gradOutput");
  shape = checks.Broadcast(target_argument, shape, "the shape of gradOutput and self");
  checks.HasShape(out_argument, shape, "gradOutput, self and target");
  if (!checks.ok()) return checks.status();

  ExecutorPlan plan{"aclnnL1LossBackward",
                    {MakeOperand(grad_argument.name, *grad_argument.tensor),
                     MakeOperand(self_argument.name, *self_argument.tensor),
                     MakeOperand(target_argument.name, *target_argument.tensor)},
                    {MakeOperand(out_argument.name, *out_argument.tensor)}};
  // Any empty input makes the output empty.
  if (!out_argument->empty()) {
    plan.kernel = opserve::kernels::MakeL1LossBackward(
        MakeLayout(*grad_argument.tensor), MakeLayout(*self_argument.tensor),
        MakeLayout(*target_argument.tensor), MakeLayout(*out_argument.tensor),
        ReductionDivisor(reduction, shape));
  }
  return CreateExecutor(std::move(plan), workspaceSize, executor);
}

aclnnStatus aclnnL1LossBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                aclrtStream stream) {
  return RunStageTwo(__func__, workspace, workspaceSize, executor, stream);
}
