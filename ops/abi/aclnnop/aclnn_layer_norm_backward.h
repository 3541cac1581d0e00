/* Gradients of layer normalisation. */
#ifndef OPSERVE_ACLNNOP_ACLNN_LAYER_NORM_BACKWARD_H_
#define OPSERVE_ACLNNOP_ACLNN_LAYER_NORM_BACKWARD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * With xhat = (input - mean) * rstd and g = gradOut * weightOptional:
 * gradInputOut = rstd * (g - mean of g - xhat * mean of (g * xhat)), means over the normalised axes
 * gradWeightOut = sum of gradOut * xhat over the leading axes
 * gradBiasOut = sum of gradOut over the leading axes
 * Sums are taken in float32. The elements of biasOptional are not used.
 * gradOut, input, mean, rstd, weightOptional, biasOptional: FLOAT, FLOAT16, BF16. Ranks up to 8.
 * 161001: a null pointer, but weightOptional, biasOptional, gradInputOut, gradWeightOut and
 * gradBiasOut may be null. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnLayerNormBackwardGetWorkspaceSize(
    const aclTensor* gradOut, const aclTensor* input, const aclIntArray* normalizedShape,
    const aclTensor* mean, const aclTensor* rstd, const aclTensor* weightOptional,
    const aclTensor* biasOptional, const aclBoolArray* outputMask, aclTensor* gradInputOut,
    aclTensor* gradWeightOut, aclTensor* gradBiasOut, uint64_t* workspaceSize,
    aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnLayerNormBackward(void* workspace, uint64_t workspaceSize,
                                             aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_LAYER_NORM_BACKWARD_H_ */
