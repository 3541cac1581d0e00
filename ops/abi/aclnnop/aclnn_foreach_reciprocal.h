/* Takes the reciprocals of a list of tensors. */
#ifndef OPSERVE_ACLNNOP_ACLNN_FOREACH_RECIPROCAL_H_
#define OPSERVE_ACLNNOP_ACLNN_FOREACH_RECIPROCAL_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * out[i] = 1 / x[i]; 0 gives an infinity. The tensors have one dtype.
 * x: FLOAT, FLOAT16, BF16. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape or rank outside of these rules. */
ACLNN_API aclnnStatus aclnnForeachReciprocalGetWorkspaceSize(const aclTensorList* x,
                                                             const aclTensorList* out,
                                                             uint64_t* workspaceSize,
                                                             aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnForeachReciprocal(void* workspace, uint64_t workspaceSize,
                                             aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_FOREACH_RECIPROCAL_H_ */
