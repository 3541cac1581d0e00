/* Variance and mean along axes. */
#ifndef OPSERVE_ACLNNOP_ACLNN_VAR_MEAN_H_
#define OPSERVE_ACLNNOP_ACLNN_VAR_MEAN_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * With n the number of elements over the axes dim and mean their mean:
 * varOut = sum((self - mean) ** 2) / max(n - correction, 0), meanOut = mean.
 * self: FLOAT, FLOAT16. Ranks up to 8.
 * 161001: a null pointer, but dim may be null. 161002: a type, shape, rank or attribute outside of
 * these rules. */
ACLNN_API aclnnStatus aclnnVarMeanGetWorkspaceSize(const aclTensor* self, const aclIntArray* dim,
                                                   int64_t correction, bool keepdim,
                                                   aclTensor* varOut, aclTensor* meanOut,
                                                   uint64_t* workspaceSize,
                                                   aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnVarMean(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                   aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_VAR_MEAN_H_ */
