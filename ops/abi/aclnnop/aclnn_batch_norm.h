/* Batch normalisation over everything but the channels. */
#ifndef OPSERVE_ACLNNOP_ACLNN_BATCH_NORM_H_
#define OPSERVE_ACLNNOP_ACLNN_BATCH_NORM_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * output = (input - mean) * invstd * weight + bias for each channel (axis 1), with invstd = 1 /
 * sqrt(variance + eps). training takes mean and biased variance of the batch and moves the running
 * statistics: new = (1 - momentum) * old + momentum * batch, with the unbiased variance. Without
 * training the running statistics are used and saveMean and saveInvstd hold nothing of use.
 * input, weight, bias, runningMean, runningVar: FLOAT, FLOAT16, BF16. Ranks up to 8.
 * 161001: a null pointer, but runningMean and runningVar may be null. 161002: a type, shape, rank
 * or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnBatchNormGetWorkspaceSize(
    const aclTensor* input, const aclTensor* weight, const aclTensor* bias, aclTensor* runningMean,
    aclTensor* runningVar, bool training, double momentum, double eps, aclTensor* output,
    aclTensor* saveMean, aclTensor* saveInvstd, uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnBatchNorm(void* workspace, uint64_t workspaceSize,
                                     aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_BATCH_NORM_H_ */
