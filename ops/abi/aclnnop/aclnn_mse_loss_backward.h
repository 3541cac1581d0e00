/* Gradient of the mean squared error with respect to its input. */
#ifndef OPSERVE_ACLNNOP_ACLNN_MSE_LOSS_BACKWARD_H_
#define OPSERVE_ACLNNOP_ACLNN_MSE_LOSS_BACKWARD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 *   out = 2 * (self - target) * gradOutput / d
 * in the shape B to which gradOutput, self and target broadcast. Inputs: FLOAT, FLOAT16 or BF16,
 * all of the same type. out: any of the three, shape B. Ranks up to 8.
 * `reduction` is the forward loss's: 0 none, 1 mean (d = number of elements of B), 2 sum; d = 1 for
 * none and sum.
 * 161001: a null pointer. 161002: a type, shape, rank or reduction outside of these rules. */
ACLNN_API aclnnStatus aclnnMseLossBackwardGetWorkspaceSize(
    const aclTensor* gradOutput, const aclTensor* self, const aclTensor* target, int64_t reduction,
    aclTensor* out, uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null
 * if that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnMseLossBackward(void* workspace, uint64_t workspaceSize,
                                           aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_MSE_LOSS_BACKWARD_H_ */
