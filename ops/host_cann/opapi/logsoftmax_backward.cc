#include "aclnnop/aclnn_logsoftmax_backward.h"

#include <algorithm>
#include <utility>

#include "ops/host_cann/nnopbase/executor.h"
#include "ops/host_cann/opapi/checks.h"
#include "ops/host_cann/opapi/plan.h"

using opserve::host_cann::Argument;
using opserve::host_cann::CreateExecutor;
using opserve::host_cann::ExecutorPlan;
using opserve::host_cann::MakeLayout;
using opserve::host_cann::MakeOperand;
using opserve::host_cann::RunStageTwo;
using opserve::host_cann::StageOneChecks;

aclnnStatus aclnnLogSoftmaxBackwardGetWorkspaceSize(const aclTensor* gradOutput,
                                                    const aclTensor* output, int64_t dim,
                                                    aclTensor* out, uint64_t* workspaceSize,
                                                    aclOpExecutor** executor) {
  Argument grad_argument{"gradOutput", gradOutput};
  Argument output_argument{"output", output};
  Argument out_argument{"out", out};

  StageOneChecks checks("LogSoftmaxBackward", __func__);
  checks.Results(workspaceSize, executor);
  checks.Tensors({&output_argument, &grad_argument, &out_argument});
  if (!checks.ok()) return checks.status();

  ExecutorPlan plan{"aclnnLogSoftmaxBackward",
                    {MakeOperand(grad_argument.name, *grad_argument.tensor),
                     MakeOperand(output_argument.name, *output_argument.tensor)},
                    {MakeOperand(out_argument.name, *out_argument.tensor)}};
  // An empty call succeeds whatever the rest looks like: CANN looks no further.
  if (grad_argument->empty() || output_argument->empty()) {
    return CreateExecutor(std::move(plan), workspaceSize, executor);
  }

  checks.ComputeType(output_argument);
  checks.SameType(grad_argument, output_argument);
  if (out_argument->dtype != ACL_DOUBLE) checks.TensorType(out_argument);
  checks.RankAtMost8({&grad_argument, &output_argument, &out_argument});
  checks.HasShape(grad_argument, output_argument->shape, "output");
  checks.HasShape(out_argument, output_argument->shape, "output");
  // A 0-d tensor counts as one axis of size 1.
  const int64_t rank = std::max<int64_t>(output_argument->shape.size(), 1);
  checks.InRange("dim", dim, -rank, rank - 1);
  if (!checks.ok()) return checks.status();

  plan.kernel = opserve::kernels::MakeLogSoftmaxBackward(
      MakeLayout(*grad_argument.tensor), MakeLayout(*output_argument.tensor),
      MakeLayout(*out_argument.tensor), static_cast<int>(dim < 0 ? dim + rank : dim));
  return CreateExecutor(std::move(plan), workspaceSize, executor);
}

aclnnStatus aclnnLogSoftmaxBackward(void* workspace, uint64_t workspaceSize,
                                    aclOpExecutor* executor, aclrtStream stream) {
  return RunStageTwo(__func__, workspace, workspaceSize, executor, stream);
}
