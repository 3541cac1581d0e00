/* Interpolates between two tensors with a weight for each element. */
#ifndef OPSERVE_ACLNNOP_ACLNN_LERP_TENSOR_H_
#define OPSERVE_ACLNNOP_ACLNN_LERP_TENSOR_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * out = self + weight * (end - self). weight 0 gives self, weight 1 end; values outside of 0 to 1
 * extrapolate. All three broadcast and have one dtype.
 * self, end, weight: FLOAT, FLOAT16, BF16. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape or rank outside of these rules. */
ACLNN_API aclnnStatus aclnnLerpGetWorkspaceSize(const aclTensor* self, const aclTensor* end,
                                                const aclTensor* weight, aclTensor* out,
                                                uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnLerp(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                aclrtStream stream);

/* Stage one. Interpolates between two tensors with a weight for each element, in place.
 * selfRef = selfRef + weight * (end - selfRef). weight 0 gives selfRef, weight 1 end; values
 * outside of 0 to 1 extrapolate. end and weight broadcast to selfRef's shape; all three have one
 * dtype.
 * selfRef, end, weight: FLOAT, FLOAT16, BF16. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape or rank outside of these rules. */
ACLNN_API aclnnStatus aclnnInplaceLerpGetWorkspaceSize(aclTensor* selfRef, const aclTensor* end,
                                                       const aclTensor* weight,
                                                       uint64_t* workspaceSize,
                                                       aclOpExecutor** executor);

/* Stage two, as above. */
ACLNN_API aclnnStatus aclnnInplaceLerp(void* workspace, uint64_t workspaceSize,
                                       aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_LERP_TENSOR_H_ */
