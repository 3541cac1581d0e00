/* Writes elements at indices along an axis. */
#ifndef OPSERVE_ACLNNOP_ACLNN_SCATTER_H_
#define OPSERVE_ACLNNOP_ACLNN_SCATTER_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * out = self; then out[index[i][j]][j] = src[i][j] for dim 0, likewise for the others. index fits
 * into src, and into self beside dim. reduce adds or multiplies instead. Without it equal places
 * get any one of their elements.
 * self, src: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64, BOOL. index: INT32,
 * INT64. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnScatterGetWorkspaceSize(const aclTensor* self, int64_t dim,
                                                   const aclTensor* index, const aclTensor* src,
                                                   int64_t reduce, aclTensor* out,
                                                   uint64_t* workspaceSize,
                                                   aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnScatter(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                   aclrtStream stream);

/* Stage one. Writes a number at indices along an axis.
 * out = self; then out[index[i][j]][j] = value for dim 0, likewise for the others. index fits into
 * self beside dim. reduce adds or multiplies instead.
 * self: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64, BOOL. index: INT32, INT64.
 * Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnScatterValueGetWorkspaceSize(const aclTensor* self, int64_t dim,
                                                        const aclTensor* index,
                                                        const aclScalar* value, int64_t reduce,
                                                        aclTensor* out, uint64_t* workspaceSize,
                                                        aclOpExecutor** executor);

/* Stage two, as above. */
ACLNN_API aclnnStatus aclnnScatterValue(void* workspace, uint64_t workspaceSize,
                                        aclOpExecutor* executor, aclrtStream stream);

/* Stage one. Writes elements at indices along an axis, in place.
 * selfRef[index[i][j]][j] = src[i][j] for dim 0, likewise for the others. index fits into src, and
 * into selfRef beside dim. reduce adds or multiplies instead. Without it equal places get any one
 * of their elements.
 * selfRef, src: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64, BOOL. index: INT32,
 * INT64. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnInplaceScatterGetWorkspaceSize(aclTensor* selfRef, int64_t dim,
                                                          const aclTensor* index,
                                                          const aclTensor* src, int64_t reduce,
                                                          uint64_t* workspaceSize,
                                                          aclOpExecutor** executor);

/* Stage two, as above. */
ACLNN_API aclnnStatus aclnnInplaceScatter(void* workspace, uint64_t workspaceSize,
                                          aclOpExecutor* executor, aclrtStream stream);

/* Stage one. Writes a number at indices along an axis, in place.
 * selfRef[index[i][j]][j] = value for dim 0, likewise for the others. index fits into selfRef
 * beside dim. reduce adds or multiplies instead.
 * selfRef: FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64, BOOL. index: INT32,
 * INT64. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnInplaceScatterValueGetWorkspaceSize(
    aclTensor* selfRef, int64_t dim, const aclTensor* index, const aclScalar* value, int64_t reduce,
    uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two, as above. */
ACLNN_API aclnnStatus aclnnInplaceScatterValue(void* workspace, uint64_t workspaceSize,
                                               aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_SCATTER_H_ */
