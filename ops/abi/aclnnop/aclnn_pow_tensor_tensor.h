/* Raises a tensor to the powers in another. */
#ifndef OPSERVE_ACLNNOP_ACLNN_POW_TENSOR_TENSOR_H_
#define OPSERVE_ACLNNOP_ACLNN_POW_TENSOR_TENSOR_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * out = self ** exponent. 0 to the power 0 is 1; a negative number to a fractional power is NaN.
 * Integer powers of integers wrap around; negative exponents of integers other than 1 and -1 give
 * 0. The operands broadcast and are promoted to a common dtype, in which the result is computed and
 * rounded once; out has it unless another is asked for.
 * self, exponent, out: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64, BOOL. Ranks
 * up to 8.
 * 161001: a null pointer. 161002: a type, shape or rank outside of these rules. */
ACLNN_API aclnnStatus aclnnPowTensorTensorGetWorkspaceSize(const aclTensor* self,
                                                           const aclTensor* exponent,
                                                           aclTensor* out, uint64_t* workspaceSize,
                                                           aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnPowTensorTensor(void* workspace, uint64_t workspaceSize,
                                           aclOpExecutor* executor, aclrtStream stream);

/* Stage one. Raises a tensor to the powers in another, in place.
 * self = self ** exponent. 0 to the power 0 is 1; a negative number to a fractional power is NaN.
 * Integer powers of integers wrap around; negative exponents of integers other than 1 and -1 give
 * 0. exponent broadcasts to self's shape; the common dtype must convert to self's.
 * self, exponent: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64, BOOL. Ranks up to
 * 8.
 * 161001: a null pointer. 161002: a type, shape or rank outside of these rules. */
ACLNN_API aclnnStatus aclnnInplacePowTensorTensorGetWorkspaceSize(const aclTensor* self,
                                                                  const aclTensor* exponent,
                                                                  uint64_t* workspaceSize,
                                                                  aclOpExecutor** executor);

/* Stage two, as above. */
ACLNN_API aclnnStatus aclnnInplacePowTensorTensor(void* workspace, uint64_t workspaceSize,
                                                  aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_POW_TENSOR_TENSOR_H_ */
