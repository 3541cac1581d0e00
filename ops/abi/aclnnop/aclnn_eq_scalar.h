/* Tells where a tensor is equal to a number. */
#ifndef OPSERVE_ACLNNOP_ACLNN_EQ_SCALAR_H_
#define OPSERVE_ACLNNOP_ACLNN_EQ_SCALAR_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * out = self == other, compared in self's dtype, or FLOAT if self is an integer and other a
 * fraction. NaN equals nothing, not even itself. out is BOOL, or 1 and 0 in another dtype if that
 * is asked for.
 * self, out: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64, BOOL. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnEqScalarGetWorkspaceSize(const aclTensor* self, const aclScalar* other,
                                                    aclTensor* out, uint64_t* workspaceSize,
                                                    aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnEqScalar(void* workspace, uint64_t workspaceSize,
                                    aclOpExecutor* executor, aclrtStream stream);

/* Stage one. Tells where a tensor is equal to a number, in place.
 * selfRef = 1 where selfRef == other, else 0, compared in selfRef's dtype, or FLOAT if selfRef is
 * an integer and other a fraction. NaN equals nothing, not even itself.
 * selfRef: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64, BOOL. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnInplaceEqScalarGetWorkspaceSize(aclTensor* selfRef,
                                                           const aclScalar* other,
                                                           uint64_t* workspaceSize,
                                                           aclOpExecutor** executor);

/* Stage two, as above. */
ACLNN_API aclnnStatus aclnnInplaceEqScalar(void* workspace, uint64_t workspaceSize,
                                           aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_EQ_SCALAR_H_ */
