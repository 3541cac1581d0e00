/* Gradients of the layer-normalised sum of two tensors. */
#ifndef OPSERVE_ACLNNOP_ACLNN_ADD_LAYER_NORM_GRAD_H_
#define OPSERVE_ACLNNOP_ACLNN_ADD_LAYER_NORM_GRAD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * With x = x1 + x2, xhat = (x - mean) * rstd and g = dy * gamma:
 * dxOut = rstd * (g - mean of g - xhat * mean of (g * xhat)) + dsumOptional
 * dgammaOut = sum of dy * xhat, dbetaOut = sum of dy over the leading axes
 * dy, x1, x2, gamma, dsumOptional: FLOAT, FLOAT16, BF16. rstd, mean: FLOAT. Ranks up to 8.
 * 161001: a null pointer, but dsumOptional may be null. 161002: a type, shape or rank outside of
 * these rules. */
ACLNN_API aclnnStatus aclnnAddLayerNormGradGetWorkspaceSize(
    const aclTensor* dy, const aclTensor* x1, const aclTensor* x2, const aclTensor* rstd,
    const aclTensor* mean, const aclTensor* gamma, const aclTensor* dsumOptional,
    const aclTensor* dxOut, const aclTensor* dgammaOut, const aclTensor* dbetaOut,
    uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnAddLayerNormGrad(void* workspace, uint64_t workspaceSize,
                                            aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_ADD_LAYER_NORM_GRAD_H_ */
