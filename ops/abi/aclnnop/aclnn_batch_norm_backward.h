/* Gradients of batch normalisation. */
#ifndef OPSERVE_ACLNNOP_ACLNN_BATCH_NORM_BACKWARD_H_
#define OPSERVE_ACLNNOP_ACLNN_BATCH_NORM_BACKWARD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * With xhat = (input - mean) * invstd and g = gradOut * weight, for each channel:
 * training:  gradInput = invstd * (g - mean of g - xhat * mean of (g * xhat)), mean and invstd the
 * saved ones
 * otherwise: gradInput = invstd * g, mean and invstd from the running statistics and eps
 * gradWeight = sum of gradOut * xhat, gradBias = sum of gradOut
 * gradOut, input, weight, runningMean, runningVar, saveMean, saveInvstd: FLOAT, FLOAT16, BF16.
 * Ranks up to 8.
 * 161001: a null pointer, but weight, runningMean, runningVar, saveMean, saveInvstd, gradInput,
 * gradWeight and gradBias may be null. 161002: a type, shape, rank or attribute outside of these
 * rules. */
ACLNN_API aclnnStatus aclnnBatchNormBackwardGetWorkspaceSize(
    const aclTensor* gradOut, const aclTensor* input, const aclTensor* weight,
    const aclTensor* runningMean, const aclTensor* runningVar, const aclTensor* saveMean,
    const aclTensor* saveInvstd, bool training, double eps, const aclBoolArray* outputMask,
    aclTensor* gradInput, aclTensor* gradWeight, aclTensor* gradBias, uint64_t* workspaceSize,
    aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnBatchNormBackward(void* workspace, uint64_t workspaceSize,
                                             aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_BATCH_NORM_BACKWARD_H_ */
