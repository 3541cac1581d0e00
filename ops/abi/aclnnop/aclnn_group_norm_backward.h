/* Gradients of group normalisation. */
#ifndef OPSERVE_ACLNNOP_ACLNN_GROUP_NORM_BACKWARD_H_
#define OPSERVE_ACLNNOP_ACLNN_GROUP_NORM_BACKWARD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * With xhat = (input - mean) * rstd and g = gradOut * gamma:
 * gradInput = rstd * (g - mean of g - xhat * mean of (g * xhat)), means over each group of each
 * sample
 * gradGammaOut = sum of gradOut * xhat, gradBetaOut = sum of gradOut, for each channel
 * gradOut, input, mean, rstd, gamma: FLOAT, FLOAT16, BF16. Ranks up to 8.
 * 161001: a null pointer, but gamma, gradInput, gradGammaOut and gradBetaOut may be null. 161002: a
 * type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnGroupNormBackwardGetWorkspaceSize(
    const aclTensor* gradOut, const aclTensor* input, const aclTensor* mean, const aclTensor* rstd,
    const aclTensor* gamma, int64_t N, int64_t C, int64_t HxW, int64_t group,
    const aclBoolArray* outputMask, aclTensor* gradInput, aclTensor* gradGammaOut,
    aclTensor* gradBetaOut, uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnGroupNormBackward(void* workspace, uint64_t workspaceSize,
                                             aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_GROUP_NORM_BACKWARD_H_ */
