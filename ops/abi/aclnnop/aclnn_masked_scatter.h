/* Overwrites the masked elements with the elements of a tensor in turn. */
#ifndef OPSERVE_ACLNNOP_ACLNN_MASKED_SCATTER_H_
#define OPSERVE_ACLNNOP_ACLNN_MASKED_SCATTER_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * The elements of selfRef where mask holds take the first elements of source, in row-major order;
 * the rest stays. mask broadcasts to selfRef's shape; source has selfRef's dtype and at least as
 * many elements as are masked.
 * selfRef, source: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64, BOOL. mask:
 * UINT8, BOOL. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape or rank outside of these rules. */
ACLNN_API aclnnStatus aclnnInplaceMaskedScatterGetWorkspaceSize(aclTensor* selfRef,
                                                                const aclTensor* mask,
                                                                const aclTensor* source,
                                                                uint64_t* workspaceSize,
                                                                aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnInplaceMaskedScatter(void* workspace, uint64_t workspaceSize,
                                                aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_MASKED_SCATTER_H_ */
