/* Negative log likelihood of target classes. */
#ifndef OPSERVE_ACLNNOP_ACLNN_NLL_LOSS_H_
#define OPSERVE_ACLNNOP_ACLNN_NLL_LOSS_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * The single loss is -weight[t] * self at class t, t being the target; ignored samples have loss 0.
 * mean divides the sum by that of the weights that were used, totalWeightOut. Classes outside of
 * the range are undefined.
 * self, weight: FLOAT, FLOAT16, BF16. target: UINT8, INT32, INT64. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnNLLLossGetWorkspaceSize(const aclTensor* self, const aclTensor* target,
                                                   const aclTensor* weight, int64_t reduction,
                                                   int64_t ignoreIndex, aclTensor* out,
                                                   aclTensor* totalWeightOut,
                                                   uint64_t* workspaceSize,
                                                   aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnNLLLoss(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                   aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_NLL_LOSS_H_ */
