/* One AdamW step on a list of parameters. */
#ifndef OPSERVE_ACLNNOP_ACLNN_FUSED_ADAMW_H_
#define OPSERVE_ACLNNOP_ACLNN_FUSED_ADAMW_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * For each parameter, with t its element of stateSteps:
 * param = param * (1 - lr * weightDecay)
 * m = beta1 * m + (1 - beta1) * g, v = beta2 * v + (1 - beta2) * g * g
 * param = param - lr / (1 - beta1 ** t) * m / (sqrt(v / (1 - beta2 ** t)) + eps)
 * with g the gradient, divided by gradScaleOptional, negative if maximize. With amsgrad the largest
 * v so far takes the place of v. Nothing happens if foundInfOptional is 1.
 * paramsRef, grads, expAvgsRef, expAvgSqsRef, maxExpAvgSqsRef: FLOAT, FLOAT16, BF16. stateSteps:
 * FLOAT, INT64. gradScaleOptional, foundInfOptional: FLOAT. Ranks up to 8.
 * 161001: a null pointer, but maxExpAvgSqsRef, gradScaleOptional and foundInfOptional may be null.
 * 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnFusedAdamwGetWorkspaceSize(
    const aclTensorList* paramsRef, const aclTensorList* grads, const aclTensorList* expAvgsRef,
    const aclTensorList* expAvgSqsRef, const aclTensorList* maxExpAvgSqsRef,
    const aclTensorList* stateSteps, const aclTensor* gradScaleOptional,
    const aclTensor* foundInfOptional, double lr, double beta1, double beta2, double weightDecay,
    double eps, bool amsgrad, bool maximize, uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnFusedAdamw(void* workspace, uint64_t workspaceSize,
                                      aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_FUSED_ADAMW_H_ */
