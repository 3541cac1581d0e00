/* Writes at places that are given by a tensor for each leading axis. */
#ifndef OPSERVE_ACLNNOP_ACLNN_INDEX_PUT_IMPL_H_
#define OPSERVE_ACLNNOP_ACLNN_INDEX_PUT_IMPL_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * selfRef[indices[0], indices[1], ...] = values, or += values if accumulate; values broadcast to
 * the indexed shape. Negative indices count from the end. Without accumulate equal places get any
 * one of their values.
 * selfRef, values: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64, BOOL. indices:
 * INT32, INT64. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnIndexPutImplGetWorkspaceSize(
    aclTensor* selfRef, const aclTensorList* indices, const aclTensor* values,
    const bool accumulate, const bool unsafe, uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnIndexPutImpl(void* workspace, uint64_t workspaceSize,
                                        aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_INDEX_PUT_IMPL_H_ */
