/* Sum of two tensors, layer-normalised over the last axis. */
#ifndef OPSERVE_ACLNNOP_ACLNN_ADD_LAYER_NORM_H_
#define OPSERVE_ACLNNOP_ACLNN_ADD_LAYER_NORM_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * x = x1 + x2 + biasOptional and yOut = (x - mean) / sqrt(variance + epsilon) * gamma + beta, with
 * mean and biased variance over the trailing axes that gamma covers. xOut is written if
 * additionalOutput.
 * x1, x2, gamma, beta, biasOptional: FLOAT, FLOAT16, BF16. Ranks up to 8.
 * 161001: a null pointer, but biasOptional may be null. 161002: a type, shape, rank or attribute
 * outside of these rules. */
ACLNN_API aclnnStatus aclnnAddLayerNormGetWorkspaceSize(
    const aclTensor* x1, const aclTensor* x2, const aclTensor* gamma, const aclTensor* beta,
    const aclTensor* biasOptional, double epsilon, bool additionalOutput, const aclTensor* yOut,
    const aclTensor* meanOut, const aclTensor* rstdOut, const aclTensor* xOut,
    uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnAddLayerNorm(void* workspace, uint64_t workspaceSize,
                                        aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_ADD_LAYER_NORM_H_ */
