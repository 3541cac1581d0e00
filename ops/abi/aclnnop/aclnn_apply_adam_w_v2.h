/* One AdamW step on a parameter. */
#ifndef OPSERVE_ACLNNOP_ACLNN_APPLY_ADAM_W_V2_H_
#define OPSERVE_ACLNNOP_ACLNN_APPLY_ADAM_W_V2_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * With t = step + 1:
 * varRef = varRef * (1 - lr * weightDecay)
 * mRef = beta1 * mRef + (1 - beta1) * g, vRef = beta2 * vRef + (1 - beta2) * g * g
 * varRef = varRef - lr / (1 - beta1 ** t) * mRef / (sqrt(vRef / (1 - beta2 ** t)) + eps)
 * with g the gradient, or its negative if maximize. With amsgrad the largest vRef so far takes the
 * place of vRef. Callers that count steps from 1 pass their count less one.
 * varRef, mRef, vRef, maxGradNormOptionalRef, grad: FLOAT, FLOAT16, BF16. step: FLOAT, INT64. Ranks
 * up to 8.
 * 161001: a null pointer, but maxGradNormOptionalRef may be null. 161002: a type, shape, rank or
 * attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnApplyAdamWV2GetWorkspaceSize(
    aclTensor* varRef, aclTensor* mRef, aclTensor* vRef, aclTensor* maxGradNormOptionalRef,
    const aclTensor* grad, const aclTensor* step, float lr, float beta1, float beta2,
    float weightDecay, float eps, bool amsgrad, bool maximize, uint64_t* workspaceSize,
    aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnApplyAdamWV2(void* workspace, uint64_t workspaceSize,
                                        aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_APPLY_ADAM_W_V2_H_ */
