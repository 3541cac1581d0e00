/* Cross entropy between logits and target classes. */
#ifndef OPSERVE_ACLNNOP_ACLNN_CROSS_ENTROPY_LOSS_H_
#define OPSERVE_ACLNNOP_ACLNN_CROSS_ENTROPY_LOSS_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * logProbOut = log-softmax of input along axis 1. The single loss is that of NllLoss on logProbOut;
 * labelSmoothing takes that share of it from the weighted mean over all classes instead. For mean
 * the sum is divided by that of the weights that were used. zlossOut and lseForZlossOut are not
 * computed.
 * input: FLOAT, FLOAT16, BF16. target: INT32, INT64. weightOptional: FLOAT. Ranks up to 8.
 * 161001: a null pointer, but weightOptional and reductionOptional may be null. 161002: a type,
 * shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnCrossEntropyLossGetWorkspaceSize(
    const aclTensor* input, const aclTensor* target, const aclTensor* weightOptional,
    char* reductionOptional, int64_t ignoreIndex, double labelSmoothing,
    double lseSquareScaleForZloss, bool returnZloss, const aclTensor* lossOut,
    const aclTensor* logProbOut, const aclTensor* zlossOut, const aclTensor* lseForZlossOut,
    uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnCrossEntropyLoss(void* workspace, uint64_t workspaceSize,
                                            aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_CROSS_ENTROPY_LOSS_H_ */
