/* Gradient of cross entropy with respect to its logits. */
#ifndef OPSERVE_ACLNNOP_ACLNN_CROSS_ENTROPY_LOSS_GRAD_H_
#define OPSERVE_ACLNNOP_ACLNN_CROSS_ENTROPY_LOSS_GRAD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * With t the target, w its weightOptional and d the sum of the weights that were used for mean,
 * else 1:
 * out = gradLoss * w / d * (exp(logProb) - (1 at class t, else 0)), 0 for ignored samples.
 * gradLoss, logProb, gradZlossOptional, lseForZlossOptional: FLOAT, FLOAT16, BF16. target: INT64.
 * weightOptional: FLOAT. Ranks up to 8.
 * 161001: a null pointer, but weightOptional, gradZlossOptional, lseForZlossOptional and
 * reductionOptional may be null. 161002: a type, shape, rank or attribute outside of these rules.
 */
ACLNN_API aclnnStatus aclnnCrossEntropyLossGradGetWorkspaceSize(
    const aclTensor* gradLoss, const aclTensor* logProb, const aclTensor* target,
    const aclTensor* weightOptional, const aclTensor* gradZlossOptional,
    const aclTensor* lseForZlossOptional, char* reductionOptional, int64_t ignoreIndex,
    double labelSmoothing, double lseSquareScaleForZloss, const aclTensor* out,
    uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnCrossEntropyLossGrad(void* workspace, uint64_t workspaceSize,
                                                aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_CROSS_ENTROPY_LOSS_GRAD_H_ */
