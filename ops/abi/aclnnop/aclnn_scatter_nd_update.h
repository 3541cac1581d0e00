/* Writes slices at places that are given by several indices. */
#ifndef OPSERVE_ACLNNOP_ACLNN_SCATTER_ND_UPDATE_H_
#define OPSERVE_ACLNNOP_ACLNN_SCATTER_ND_UPDATE_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * The last axis of indices holds places in the leading axes of varRef; the slices there become
 * those of updates. Equal places get any one of their slices. Indices outside of the range are
 * undefined.
 * varRef, updates: FLOAT, FLOAT16, BF16, INT8, INT64, BOOL. indices: INT32, INT64. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape or rank outside of these rules. */
ACLNN_API aclnnStatus aclnnScatterNdUpdateGetWorkspaceSize(aclTensor* varRef,
                                                           const aclTensor* indices,
                                                           const aclTensor* updates,
                                                           uint64_t* workspaceSize,
                                                           aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnScatterNdUpdate(void* workspace, uint64_t workspaceSize,
                                           aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_SCATTER_ND_UPDATE_H_ */
