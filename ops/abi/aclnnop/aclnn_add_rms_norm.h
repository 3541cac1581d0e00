/* Sum of two tensors, normalised by its root mean square. */
#ifndef OPSERVE_ACLNNOP_ACLNN_ADD_RMS_NORM_H_
#define OPSERVE_ACLNNOP_ACLNN_ADD_RMS_NORM_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * xOut = x1 + x2 and yOut = xOut * rstdOut * gamma with rstdOut = 1 / sqrt(mean(xOut * xOut) +
 * epsilon), the mean over the trailing axes that gamma covers.
 * x1, x2, gamma: FLOAT, FLOAT16, BF16. Ranks up to 8.
 * 161001: a null pointer, but xOut may be null. 161002: a type, shape, rank or attribute outside of
 * these rules. */
ACLNN_API aclnnStatus aclnnAddRmsNormGetWorkspaceSize(const aclTensor* x1, const aclTensor* x2,
                                                      const aclTensor* gamma, double epsilon,
                                                      aclTensor* yOut, aclTensor* rstdOut,
                                                      aclTensor* xOut, uint64_t* workspaceSize,
                                                      aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnAddRmsNorm(void* workspace, uint64_t workspaceSize,
                                      aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_ADD_RMS_NORM_H_ */
