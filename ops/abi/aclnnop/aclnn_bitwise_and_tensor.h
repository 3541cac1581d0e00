/* Joins the bits of two tensors by and. */
#ifndef OPSERVE_ACLNNOP_ACLNN_BITWISE_AND_TENSOR_H_
#define OPSERVE_ACLNNOP_ACLNN_BITWISE_AND_TENSOR_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * out = the and of the bits of self and other; of BOOL the logical one. The operands broadcast and
 * are promoted to a common dtype, which out has unless another is asked for.
 * self, other: INT8, UINT8, INT16, INT32, INT64, BOOL. out: FLOAT, FLOAT16, BF16, DOUBLE, INT8,
 * UINT8, INT16, INT32, INT64, BOOL. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape or rank outside of these rules. */
ACLNN_API aclnnStatus aclnnBitwiseAndTensorGetWorkspaceSize(const aclTensor* self,
                                                            const aclTensor* other, aclTensor* out,
                                                            uint64_t* workspaceSize,
                                                            aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnBitwiseAndTensor(void* workspace, uint64_t workspaceSize,
                                            aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_BITWISE_AND_TENSOR_H_ */
