/* Adds a scaled quotient of two tensors to a tensor. */
#ifndef OPSERVE_ACLNNOP_ACLNN_ADDCDIV_H_
#define OPSERVE_ACLNNOP_ACLNN_ADDCDIV_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * out = self + value * tensor1 / tensor2. Division by zero gives an infinity, or NaN for 0 / 0. The
 * tensors broadcast and are promoted to a common dtype, in which the result is computed; out has it
 * unless another is asked for.
 * self, tensor1, tensor2, out: FLOAT, FLOAT16, BF16, DOUBLE, INT64. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnAddcdivGetWorkspaceSize(const aclTensor* self, const aclTensor* tensor1,
                                                   const aclTensor* tensor2, const aclScalar* value,
                                                   const aclTensor* out, uint64_t* workspaceSize,
                                                   aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnAddcdiv(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                   aclrtStream stream);

/* Stage one. Adds a scaled quotient of two tensors to a tensor, in place.
 * selfRef = selfRef + value * tensor1 / tensor2. Division by zero gives an infinity, or NaN for 0 /
 * 0. tensor1 and tensor2 broadcast to selfRef's shape; the common dtype must convert to selfRef's.
 * selfRef, tensor1, tensor2: FLOAT, FLOAT16, BF16, DOUBLE, INT64. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnInplaceAddcdivGetWorkspaceSize(
    const aclTensor* selfRef, const aclTensor* tensor1, const aclTensor* tensor2,
    const aclScalar* value, uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two, as above. */
ACLNN_API aclnnStatus aclnnInplaceAddcdiv(void* workspace, uint64_t workspaceSize,
                                          aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_ADDCDIV_H_ */
