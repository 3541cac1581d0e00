/* Raises a tensor to the power of a number. */
#ifndef OPSERVE_ACLNNOP_ACLNN_POW_H_
#define OPSERVE_ACLNNOP_ACLNN_POW_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * out = self ** exponent. 0 to the power 0 is 1; a negative number to a fractional power is NaN.
 * Integer powers of integers wrap around; negative exponents of integers other than 1 and -1 give
 * 0. The number only lifts the kind of self's dtype.
 * self, out: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64, BOOL. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnPowTensorScalarGetWorkspaceSize(const aclTensor* self,
                                                           const aclScalar* exponent,
                                                           const aclTensor* out,
                                                           uint64_t* workspaceSize,
                                                           aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnPowTensorScalar(void* workspace, uint64_t workspaceSize,
                                           aclOpExecutor* executor, aclrtStream stream);

/* Stage one. Raises a tensor to the power of a number, in place.
 * self = self ** exponent. 0 to the power 0 is 1; a negative number to a fractional power is NaN.
 * Integer powers of integers wrap around; negative exponents of integers other than 1 and -1 give
 * 0. The common dtype must convert to self's.
 * self: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64, BOOL. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnInplacePowTensorScalarGetWorkspaceSize(const aclTensor* self,
                                                                  const aclScalar* exponent,
                                                                  uint64_t* workspaceSize,
                                                                  aclOpExecutor** executor);

/* Stage two, as above. */
ACLNN_API aclnnStatus aclnnInplacePowTensorScalar(void* workspace, uint64_t workspaceSize,
                                                  aclOpExecutor* executor, aclrtStream stream);

/* Stage one. Raises a number to the powers in a tensor.
 * out = self ** exponent. 0 to the power 0 is 1; a negative number to a fractional power is NaN.
 * Integer powers of integers wrap around; negative exponents of integers other than 1 and -1 give
 * 0. The number only lifts the kind of exponent's dtype.
 * exponent, out: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnPowScalarTensorGetWorkspaceSize(const aclScalar* self,
                                                           const aclTensor* exponent,
                                                           const aclTensor* out,
                                                           uint64_t* workspaceSize,
                                                           aclOpExecutor** executor);

/* Stage two, as above. */
ACLNN_API aclnnStatus aclnnPowScalarTensor(void* workspace, uint64_t workspaceSize,
                                           aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_POW_H_ */
