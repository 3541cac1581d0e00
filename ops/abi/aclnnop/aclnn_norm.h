/* Vector norm along axes. */
#ifndef OPSERVE_ACLNNOP_ACLNN_NORM_H_
#define OPSERVE_ACLNNOP_ACLNN_NORM_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * out = sum(|self| ** p over the axes dim) ** (1 / p). p = inf takes the largest, -inf the smallest
 * absolute value, 0 counts what is not 0.
 * self: FLOAT, FLOAT16, BF16. Ranks up to 8.
 * 161001: a null pointer, but pScalar may be null. 161002: a type, shape, rank or attribute outside
 * of these rules. */
ACLNN_API aclnnStatus aclnnNormGetWorkspaceSize(const aclTensor* self, const aclScalar* pScalar,
                                                const aclIntArray* dim, bool keepdim,
                                                aclTensor* out, uint64_t* workspaceSize,
                                                aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnNorm(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_NORM_H_ */
