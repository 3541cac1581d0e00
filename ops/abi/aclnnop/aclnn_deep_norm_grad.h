/* Gradients of the layer normalisation of a scaled sum. */
#ifndef OPSERVE_ACLNNOP_ACLNN_DEEP_NORM_GRAD_H_
#define OPSERVE_ACLNNOP_ACLNN_DEEP_NORM_GRAD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * With xhat = (alpha * x + gx - mean) * rstd and g = dy * gamma:
 * dgxOut = rstd * (g - mean of g - xhat * mean of (g * xhat)), dxOut = alpha * dgxOut
 * dgammaOut = sum of dy * xhat, dbetaOut = sum of dy over the leading axes
 * dy, x, gx, gamma: FLOAT, FLOAT16, BF16. mean, rstd: FLOAT. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnDeepNormGradGetWorkspaceSize(
    const aclTensor* dy, const aclTensor* x, const aclTensor* gx, const aclTensor* gamma,
    const aclTensor* mean, const aclTensor* rstd, double alpha, const aclTensor* dxOut,
    const aclTensor* dgxOut, const aclTensor* dbetaOut, const aclTensor* dgammaOut,
    uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnDeepNormGrad(void* workspace, uint64_t workspaceSize,
                                        aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_DEEP_NORM_GRAD_H_ */
