/* One step of gradient descent with momentum on a list of parameters. */
#ifndef OPSERVE_ACLNNOP_ACLNN_FUSED_SGD_H_
#define OPSERVE_ACLNNOP_ACLNN_FUSED_SGD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * For each parameter, with g the gradient, divided by gradScaleOptional, negative if maximize:
 * g = g + weightDecay * param
 * b = g in the first step, else momentum * b + (1 - dampening) * g
 * param = param - lr * (g + momentum * b if nesterov, else b)
 * With gradScaleOptional the divided gradients are written back. Without momentum g takes the place
 * of b.
 * paramsRef, gradsRef, momentumBufferListOptionalRef, gradScaleOptional: FLOAT, FLOAT16, BF16.
 * Ranks up to 8.
 * 161001: a null pointer, but gradScaleOptional may be null. 161002: a type, shape, rank or
 * attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnFusedSgdGetWorkspaceSize(
    const aclTensorList* paramsRef, const aclTensorList* gradsRef,
    const aclTensorList* momentumBufferListOptionalRef, const aclTensor* gradScaleOptional,
    float weightDecay, float momentum, float lr, float dampening, bool nesterov, bool maximize,
    bool isFirstStep, uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnFusedSgd(void* workspace, uint64_t workspaceSize,
                                    aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_FUSED_SGD_H_ */
