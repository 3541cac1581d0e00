/* One Adam step on a parameter with a moving average of it. */
#ifndef OPSERVE_ACLNNOP_ACLNN_APPLY_FUSED_EMA_ADAM_H_
#define OPSERVE_ACLNNOP_ACLNN_APPLY_FUSED_EMA_ADAM_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * With g = grad, plus weightDecay * varRef in mode 0:
 * mRef = beta1 * mRef + (1 - beta1) * g, vRef = beta2 * vRef + (1 - beta2) * g * g
 * u = mRef / (1 - beta1 ** step) / (sqrt(vRef / (1 - beta2 ** step)) + eps), plus weightDecay *
 * varRef in mode 1
 * varRef = varRef - lr * u, sRef = emaDecay * sRef + (1 - emaDecay) * varRef
 * Without biasCorrection the divisors of mRef and vRef are 1.
 * grad, varRef, mRef, vRef, sRef: FLOAT, FLOAT16, BF16. step: INT64. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnApplyFusedEmaAdamGetWorkspaceSize(
    const aclTensor* grad, aclTensor* varRef, aclTensor* mRef, aclTensor* vRef, aclTensor* sRef,
    const aclTensor* step, double lr, double emaDecay, double beta1, double beta2, double eps,
    int64_t mode, bool biasCorrection, double weightDecay, uint64_t* workspaceSize,
    aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnApplyFusedEmaAdam(void* workspace, uint64_t workspaceSize,
                                             aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_APPLY_FUSED_EMA_ADAM_H_ */
