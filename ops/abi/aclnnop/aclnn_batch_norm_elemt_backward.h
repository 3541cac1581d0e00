/* Gradient of batch normalisation with respect to its input, from sums. */
#ifndef OPSERVE_ACLNNOP_ACLNN_BATCH_NORM_ELEMT_BACKWARD_H_
#define OPSERVE_ACLNNOP_ACLNN_BATCH_NORM_ELEMT_BACKWARD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * With n the sum of counter, for each channel (axis 1):
 * gradInput = (gradOut - sumDy / n - (input - mean) * invstd ** 2 * sumDyXmu / n) * invstd * weight
 * gradOut, input, mean, invstd, weight, sumDy, sumDyXmu: FLOAT, FLOAT16, BF16. counter: FLOAT,
 * FLOAT16, INT32. Ranks up to 8.
 * 161001: a null pointer, but weight may be null. 161002: a type, shape or rank outside of these
 * rules. */
ACLNN_API aclnnStatus aclnnBatchNormElemtBackwardGetWorkspaceSize(
    const aclTensor* gradOut, const aclTensor* input, const aclTensor* mean,
    const aclTensor* invstd, const aclTensor* weight, const aclTensor* sumDy,
    const aclTensor* sumDyXmu, aclTensor* counter, aclTensor* gradInput, uint64_t* workspaceSize,
    aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnBatchNormElemtBackward(void* workspace, uint64_t workspaceSize,
                                                  aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_BATCH_NORM_ELEMT_BACKWARD_H_ */
