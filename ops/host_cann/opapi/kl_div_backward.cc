#include "aclnnop/aclnn_kl_div_backward.h"

#include <utility>

#include "ops/host_cann/nnopbase/executor.h"
#include "ops/host_cann/opapi/kl_div.h"
#include "ops/host_cann/opapi/plan.h"
#include "ops/host_cann/runtime/generation.h"

using opserve::host_cann::CheckKlDiv;
using opserve::host_cann::CreateExecutor;
using opserve::host_cann::CurrentSoc;
using opserve::host_cann::ExecutorPlan;
using opserve::host_cann::KlDivArguments;
using opserve::host_cann::MakeLayout;
using opserve::host_cann::MakeOperand;
using opserve::host_cann::MakeUnreadOperand;
using opserve::host_cann::ReductionDivisor;
using opserve::host_cann::RunStageTwo;
using opserve::host_cann::Shape;
using opserve::host_cann::StageOneChecks;

aclnnStatus aclnnKlDivBackwardGetWorkspaceSize(const aclTensor* gradOutput, const aclTensor* self,
                                               const aclTensor* target, int64_t reduction,
                                               bool logTarget, aclTensor* out,
                                               uint64_t* workspaceSize, aclOpExecutor** executor) {
  KlDivArguments arguments{
      {"gradOutput", gradOutput}, {"self", self}, {"target", target}, {"out", out}};
  auto& [grad_argument, self_argument, target_argument, out_argument] = arguments;

  StageOneChecks checks("KlDivBackward", __func__);
  checks.Results(workspaceSize, executor);
  checks.Tensors({&grad_argument, &self_argument, &target_argument, &out_argument});
  if (!checks.ok()) return checks.status();
  const Shape shape = CheckKlDiv(checks, arguments, self_argument,
                                 /*double_is_supported=*/CurrentSoc().generation->computes_double);
  if (!checks.ok()) return checks.status();

  ExecutorPlan plan{"aclnnKlDivBackward",
                    {MakeOperand(grad_argument.name, *grad_argument.tensor),
                     MakeUnreadOperand(self_argument.name, *self_argument.tensor),
                     MakeOperand(target_argument.name, *target_argument.tensor)},
                    {MakeOperand(out_argument.name, *out_argument.tensor)}};
  if (!self_argument->empty()) {
    plan.kernel = opserve::kernels::MakeKlDivBackward(
        MakeLayout(*grad_argument.tensor), MakeLayout(*self_argument.tensor),
        MakeLayout(*target_argument.tensor), MakeLayout(*out_argument.tensor),
        ReductionDivisor(reduction, shape), logTarget);
  }
  return CreateExecutor(std::move(plan), workspaceSize, executor);
}

aclnnStatus aclnnKlDivBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                               aclrtStream stream) {
  return RunStageTwo(__func__, workspace, workspaceSize, executor, stream);
}
