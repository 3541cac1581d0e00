/* Gradients of normalisation by the root mean square. */
#ifndef OPSERVE_ACLNNOP_ACLNN_RMS_NORM_GRAD_H_
#define OPSERVE_ACLNNOP_ACLNN_RMS_NORM_GRAD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * With xhat = x * rstd and g = dy * gamma:
 * dxOut = rstd * (g - xhat * mean of (g * xhat)), the mean over the normalised axes
 * dgammaOut = sum of dy * xhat over the leading axes
 * Sums are taken in float32.
 * dy, x, gamma: FLOAT, FLOAT16, BF16. rstd: FLOAT. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape or rank outside of these rules. */
ACLNN_API aclnnStatus aclnnRmsNormGradGetWorkspaceSize(
    const aclTensor* dy, const aclTensor* x, const aclTensor* rstd, const aclTensor* gamma,
    const aclTensor* dxOut, const aclTensor* dgammaOut, uint64_t* workspaceSize,
    aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnRmsNormGrad(void* workspace, uint64_t workspaceSize,
                                       aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_RMS_NORM_GRAD_H_ */
