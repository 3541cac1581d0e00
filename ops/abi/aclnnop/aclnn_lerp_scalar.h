/* Interpolates between two tensors with one weight. */
#ifndef OPSERVE_ACLNNOP_ACLNN_LERP_SCALAR_H_
#define OPSERVE_ACLNNOP_ACLNN_LERP_SCALAR_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * out = self + weight * (end - self). weight 0 gives self, weight 1 end; values outside of 0 to 1
 * extrapolate. self and end broadcast and have one dtype, which out has unless another is asked
 * for.
 * self, end: FLOAT, FLOAT16, BF16. out: FLOAT, FLOAT16, BF16, DOUBLE. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnLerpsGetWorkspaceSize(const aclTensor* self, const aclTensor* end,
                                                 const aclScalar* weight, aclTensor* out,
                                                 uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnLerps(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                 aclrtStream stream);

/* Stage one. Interpolates between two tensors with one weight, in place.
 * selfRef = selfRef + weight * (end - selfRef). weight 0 gives selfRef, weight 1 end; values
 * outside of 0 to 1 extrapolate. end broadcasts to selfRef's shape and has its dtype.
 * selfRef, end: FLOAT, FLOAT16, BF16. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnInplaceLerpsGetWorkspaceSize(aclTensor* selfRef, const aclTensor* end,
                                                        const aclScalar* weight,
                                                        uint64_t* workspaceSize,
                                                        aclOpExecutor** executor);

/* Stage two, as above. */
ACLNN_API aclnnStatus aclnnInplaceLerps(void* workspace, uint64_t workspaceSize,
                                        aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_LERP_SCALAR_H_ */
