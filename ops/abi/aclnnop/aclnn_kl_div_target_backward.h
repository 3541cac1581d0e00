/* Gradient of the KL divergence with respect to its target. In libcust_opapi.so. */
#ifndef OPSERVE_ACLNNOP_ACLNN_KL_DIV_TARGET_BACKWARD_H_
#define OPSERVE_ACLNNOP_ACLNN_KL_DIV_TARGET_BACKWARD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * With B the broadcast shape of self and target:
 *   gradTarget = sum over the axes along which target was broadcast of
 *     logTarget:              gradOutput / d * exp(target) * (target - self + 1)
 *     plain, target not 0:    gradOutput / d * (ln(target) - self + 1)
 *     plain, target 0:        0
 * gradOutput, self, target: FLOAT, FLOAT16, BF16 in any mixture; gradOutput broadcasts to B.
 * gradTarget has target's type and shape. Ranks up to 8, plain formats.
 * `reduction` is the forward loss's: 0 none, 1 mean (d = number of elements of B), 2 sum, 3
 * batchmean (d = B's first size); d = 1 for none, sum and any other value.
 * 161001: a null pointer. 161002: a type, shape, rank or format outside of these rules. */
ACLNN_API aclnnStatus aclnnKlDivTargetBackwardGetWorkspaceSize(
    const aclTensor* gradOutput, const aclTensor* self, const aclTensor* target, int64_t reduction,
    bool logTarget, aclTensor* gradTarget, uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null
 * if that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnKlDivTargetBackward(void* workspace, uint64_t workspaceSize,
                                               aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_KL_DIV_TARGET_BACKWARD_H_ */
