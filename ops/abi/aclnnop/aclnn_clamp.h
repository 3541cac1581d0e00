/* Limits a tensor to an interval. */
#ifndef OPSERVE_ACLNNOP_ACLNN_CLAMP_H_
#define OPSERVE_ACLNNOP_ACLNN_CLAMP_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * self is limited from below and above: out = min(max(self, clipValueMin), clipValueMax). Where the
 * limits cross, the upper one wins. NaN stays NaN. Either limit may be left out, but not both. The
 * numbers only lift the kind of self's dtype.
 * self, out: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64. Ranks up to 8.
 * 161001: a null pointer, but clipValueMin and clipValueMax may be null. 161002: a type, shape,
 * rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnClampGetWorkspaceSize(const aclTensor* self,
                                                 const aclScalar* clipValueMin,
                                                 const aclScalar* clipValueMax, aclTensor* out,
                                                 uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnClamp(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                 aclrtStream stream);

/* Stage one. Limits a tensor from below by a number.
 * out = max(self, clipValueMin). NaN stays NaN. The number only lifts the kind of self's dtype; out
 * has that dtype unless another is asked for.
 * self, out: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnClampMinGetWorkspaceSize(const aclTensor* self,
                                                    const aclScalar* clipValueMin, aclTensor* out,
                                                    uint64_t* workspaceSize,
                                                    aclOpExecutor** executor);

/* Stage two, as above. */
ACLNN_API aclnnStatus aclnnClampMin(void* workspace, uint64_t workspaceSize,
                                    aclOpExecutor* executor, aclrtStream stream);

/* Stage one. Limits a tensor from below by another, element by element.
 * out = max(self, clipValueMin). NaN in either gives NaN. The operands broadcast and are promoted
 * to a common dtype, in which the result is computed and rounded once; out has it unless another is
 * asked for.
 * self, clipValueMin, out: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64. Ranks up
 * to 8.
 * 161001: a null pointer. 161002: a type, shape or rank outside of these rules. */
ACLNN_API aclnnStatus aclnnClampMinTensorGetWorkspaceSize(const aclTensor* self,
                                                          const aclTensor* clipValueMin,
                                                          aclTensor* out, uint64_t* workspaceSize,
                                                          aclOpExecutor** executor);

/* Stage two, as above. */
ACLNN_API aclnnStatus aclnnClampMinTensor(void* workspace, uint64_t workspaceSize,
                                          aclOpExecutor* executor, aclrtStream stream);

/* Stage one. Limits a tensor from above by a number.
 * out = min(self, clipValueMax). NaN stays NaN. The number only lifts the kind of self's dtype; out
 * has that dtype unless another is asked for.
 * self, out: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnClampMaxGetWorkspaceSize(const aclTensor* self,
                                                    const aclScalar* clipValueMax, aclTensor* out,
                                                    uint64_t* workspaceSize,
                                                    aclOpExecutor** executor);

/* Stage two, as above. */
ACLNN_API aclnnStatus aclnnClampMax(void* workspace, uint64_t workspaceSize,
                                    aclOpExecutor* executor, aclrtStream stream);

/* Stage one. Limits a tensor from above by another, element by element.
 * out = min(self, clipValueMax). NaN in either gives NaN. The operands broadcast and are promoted
 * to a common dtype, in which the result is computed and rounded once; out has it unless another is
 * asked for.
 * self, clipValueMax, out: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64. Ranks up
 * to 8.
 * 161001: a null pointer. 161002: a type, shape or rank outside of these rules. */
ACLNN_API aclnnStatus aclnnClampMaxTensorGetWorkspaceSize(const aclTensor* self,
                                                          const aclTensor* clipValueMax,
                                                          aclTensor* out, uint64_t* workspaceSize,
                                                          aclOpExecutor** executor);

/* Stage two, as above. */
ACLNN_API aclnnStatus aclnnClampMaxTensor(void* workspace, uint64_t workspaceSize,
                                          aclOpExecutor* executor, aclrtStream stream);

/* Stage one. Limits a tensor by two others, element by element.
 * self is limited from below and above: out = min(max(self, clipValueMin), clipValueMax). Where the
 * limits cross, the upper one wins. NaN stays NaN. NaN in a limit gives NaN. All three broadcast
 * and are promoted to a common dtype, which out has unless another is asked for.
 * self, out: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64. clipValueMin,
 * clipValueMax: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64, BOOL. Ranks up to
 * 8.
 * 161001: a null pointer. 161002: a type, shape or rank outside of these rules. */
ACLNN_API aclnnStatus aclnnClampTensorGetWorkspaceSize(const aclTensor* self,
                                                       const aclTensor* clipValueMin,
                                                       const aclTensor* clipValueMax,
                                                       aclTensor* out, uint64_t* workspaceSize,
                                                       aclOpExecutor** executor);

/* Stage two, as above. */
ACLNN_API aclnnStatus aclnnClampTensor(void* workspace, uint64_t workspaceSize,
                                       aclOpExecutor* executor, aclrtStream stream);

/* Stage one. Limits a tensor from above by a number, in place.
 * selfRef = min(selfRef, clipValueMax). NaN stays NaN. The common dtype must convert to selfRef's.
 * selfRef: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnInplaceClampMaxGetWorkspaceSize(aclTensor* selfRef,
                                                           const aclScalar* clipValueMax,
                                                           uint64_t* workspaceSize,
                                                           aclOpExecutor** executor);

/* Stage two, as above. */
ACLNN_API aclnnStatus aclnnInplaceClampMax(void* workspace, uint64_t workspaceSize,
                                           aclOpExecutor* executor, aclrtStream stream);

/* Stage one. Limits a tensor from below by another, in place.
 * selfRef = max(selfRef, clipValueMin). NaN in either gives NaN. The limit broadcasts to selfRef's
 * shape; the common dtype must convert to selfRef's.
 * selfRef, clipValueMin: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64. Ranks up
 * to 8.
 * 161001: a null pointer. 161002: a type, shape or rank outside of these rules. */
ACLNN_API aclnnStatus aclnnInplaceClampMinTensorGetWorkspaceSize(aclTensor* selfRef,
                                                                 const aclTensor* clipValueMin,
                                                                 uint64_t* workspaceSize,
                                                                 aclOpExecutor** executor);

/* Stage two, as above. */
ACLNN_API aclnnStatus aclnnInplaceClampMinTensor(void* workspace, uint64_t workspaceSize,
                                                 aclOpExecutor* executor, aclrtStream stream);

/* Stage one. Limits a tensor from above by another, in place.
 * selfRef = min(selfRef, clipValueMax). NaN in either gives NaN. The limit broadcasts to selfRef's
 * shape; the common dtype must convert to selfRef's.
 * selfRef, clipValueMax: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64. Ranks up
 * to 8.
 * 161001: a null pointer. 161002: a type, shape or rank outside of these rules. */
ACLNN_API aclnnStatus aclnnInplaceClampMaxTensorGetWorkspaceSize(aclTensor* selfRef,
                                                                 const aclTensor* clipValueMax,
                                                                 uint64_t* workspaceSize,
                                                                 aclOpExecutor** executor);

/* Stage two, as above. */
ACLNN_API aclnnStatus aclnnInplaceClampMaxTensor(void* workspace, uint64_t workspaceSize,
                                                 aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_CLAMP_H_ */
