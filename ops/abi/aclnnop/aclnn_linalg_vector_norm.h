/* Vector norm along axes in a chosen dtype. */
#ifndef OPSERVE_ACLNNOP_ACLNN_LINALG_VECTOR_NORM_H_
#define OPSERVE_ACLNNOP_ACLNN_LINALG_VECTOR_NORM_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * out = sum(|self| ** ord over the axes dims) ** (1 / ord). ord = inf takes the largest, -inf the
 * smallest absolute value, 0 counts what is not 0.
 * self, dtype: FLOAT, FLOAT16, BF16. Ranks up to 8.
 * 161001: a null pointer, but dims may be null. 161002: a type, shape, rank or attribute outside of
 * these rules. */
ACLNN_API aclnnStatus aclnnLinalgVectorNormGetWorkspaceSize(
    const aclTensor* self, const aclScalar* ord, const aclIntArray* dims, bool keepDims,
    const aclDataType dtype, aclTensor* out, uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnLinalgVectorNorm(void* workspace, uint64_t workspaceSize,
                                            aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_LINALG_VECTOR_NORM_H_ */
