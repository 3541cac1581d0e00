/* Sums for the gradients of batch normalisation. */
#ifndef OPSERVE_ACLNNOP_ACLNN_BATCH_NORM_BACKWARD_REDUCE_H_
#define OPSERVE_ACLNNOP_ACLNN_BATCH_NORM_BACKWARD_REDUCE_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * For each channel (axis 1): sumDy = sum of gradOut, sumDyXmu = sum of gradOut * (input - mean),
 * gradWeight = sumDyXmu * invstd, gradBias = sumDy.
 * gradOut, input, mean, invstd, weight: FLOAT, FLOAT16, BF16. Ranks up to 8.
 * 161001: a null pointer, but weight, sumDy, sumDyXmu, gradWeight and gradBias may be null. 161002:
 * a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnBatchNormReduceBackwardGetWorkspaceSize(
    const aclTensor* gradOut, const aclTensor* input, const aclTensor* mean,
    const aclTensor* invstd, const aclTensor* weight, const bool inputG, const bool weightG,
    const bool biasG, aclTensor* sumDy, aclTensor* sumDyXmu, aclTensor* gradWeight,
    aclTensor* gradBias, uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnBatchNormReduceBackward(void* workspace, uint64_t workspaceSize,
                                                   aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_BATCH_NORM_BACKWARD_REDUCE_H_ */
