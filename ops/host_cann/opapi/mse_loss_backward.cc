#include "aclnnop/aclnn_mse_loss_backward.h"

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

aclnnStatus aclnnMseLossBackwardGetWorkspaceSize(const aclTensor* gradOutput, const aclTensor* self,
                                                 const aclTensor* target, int64_t reduction,
                                                 aclTensor* out, uint64_t* workspaceSize,
                                                 aclOpExecutor** executor) {
  Argument grad_argument{"gradOutput", gradOutput};
  Argument self_argument{"self", self};
  Argument target_argument{"target", target};
  Argument out_argument{"out", out};

  StageOneChecks checks("MseLossBackward", __func__);
  checks.Results(workspaceSize, executor);
  checks.Tensors({&grad_argument, &self_argument, &target_argument, &out_argument});
  if (!checks.ok()) return checks.status();

  checks.SameType(grad_argument, self_argument);
  checks.SameType(target_argument, self_argument);
  checks.ComputeType(self_argument);
  checks.TensorType(out_argument);
  checks.InRange("reduction", reduction, kNoReduction, kSumReduction);
  checks.RankAtMost8({&self_argument, &target_argument, &grad_argument, &out_argument});
  Shape shape = checks.Broadcast(self_argument, grad_argument->shape, "gradOutput");
  shape = checks.Broadcast(target_argument, shape, "the shape of gradOutput and self");
  checks.HasShape(out_argument, shape, "gradOutput, self and target");
  if (!checks.ok()) return checks.status();

  ExecutorPlan plan{"aclnnMseLossBackward",
                    {MakeOperand(grad_argument.name, *grad_argument.tensor),
                     MakeOperand(self_argument.name, *self_argument.tensor),
                     MakeOperand(target_argument.name, *target_argument.tensor)},
                    {MakeOperand(out_argument.name, *out_argument.tensor)}};
  // Any empty input makes the output empty.
  if (!out_argument->empty()) {
    plan.kernel = opserve::kernels::MakeMseLossBackward(
        MakeLayout(*grad_argument.tensor), MakeLayout(*self_argument.tensor),
        MakeLayout(*target_argument.tensor), MakeLayout(*out_argument.tensor),
        ReductionDivisor(reduction, shape));
  }
  return CreateExecutor(std::move(plan), workspaceSize, executor);
}

aclnnStatus aclnnMseLossBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                 aclrtStream stream) {
  return RunStageTwo(__func__, workspace, workspaceSize, executor, stream);
}
