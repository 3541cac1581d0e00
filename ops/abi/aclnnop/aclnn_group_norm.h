/* Group normalisation. */
#ifndef OPSERVE_ACLNNOP_ACLNN_GROUP_NORM_H_
#define OPSERVE_ACLNNOP_ACLNN_GROUP_NORM_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * The channels are split into groups; out = (self - mean) * rstd * gamma + beta, with mean and
 * biased variance over each group of each sample and rstd = 1 / sqrt(variance + eps). Sums are
 * taken in float32.
 * self, gamma, beta: FLOAT, FLOAT16, BF16. Ranks up to 8.
 * 161001: a null pointer, but gamma and beta may be null. 161002: a type, shape, rank or attribute
 * outside of these rules. */
ACLNN_API aclnnStatus aclnnGroupNormGetWorkspaceSize(const aclTensor* self, const aclTensor* gamma,
                                                     const aclTensor* beta, int64_t N, int64_t C,
                                                     int64_t HxW, int64_t group, double eps,
                                                     aclTensor* out, aclTensor* meanOut,
                                                     aclTensor* rstdOut, uint64_t* workspaceSize,
                                                     aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnGroupNorm(void* workspace, uint64_t workspaceSize,
                                     aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_GROUP_NORM_H_ */
