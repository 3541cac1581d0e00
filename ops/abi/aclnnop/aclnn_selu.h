/* Applies SELU, the self-normalising exponential linear unit. */
#ifndef OPSERVE_ACLNNOP_ACLNN_SELU_H_
#define OPSERVE_ACLNNOP_ACLNN_SELU_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * out = s * (self where self > 0, else a * (exp(self) - 1)), with a = 1.6732632423543772 and s =
 * 1.0507009873554805.
 * self: FLOAT, FLOAT16, BF16, INT8, INT32. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape or rank outside of these rules. */
ACLNN_API aclnnStatus aclnnSeluGetWorkspaceSize(const aclTensor* self, aclTensor* out,
                                                uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnSelu(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                aclrtStream stream);

/* Stage one. Applies SELU, the self-normalising exponential linear unit, in place.
 * selfRef = s * (selfRef where selfRef > 0, else a * (exp(selfRef) - 1)), with a =
 * 1.6732632423543772 and s = 1.0507009873554805.
 * selfRef: FLOAT, FLOAT16, BF16, INT8, INT32. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape or rank outside of these rules. */
ACLNN_API aclnnStatus aclnnInplaceSeluGetWorkspaceSize(aclTensor* selfRef, uint64_t* workspaceSize,
                                                       aclOpExecutor** executor);

/* Stage two, as above. */
ACLNN_API aclnnStatus aclnnInplaceSelu(void* workspace, uint64_t workspaceSize,
                                       aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_SELU_H_ */
