/* Softmax of scaled and masked logits along the last axis. */
#ifndef OPSERVE_ACLNNOP_ACLNN_SCALED_MASKED_SOFTMAX_H_
#define OPSERVE_ACLNNOP_ACLNN_SCALED_MASKED_SOFTMAX_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * y = softmax of x * scale along the last axis, where masked elements are -10000 instead. x has
 * shape [B, N, S1, S2]; mask broadcasts on B and N.
 * x: FLOAT, FLOAT16, BF16. mask: BOOL. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnScaledMaskedSoftmaxGetWorkspaceSize(const aclTensor* x,
                                                               const aclTensor* mask, double scale,
                                                               bool fixedTriuMask, aclTensor* y,
                                                               uint64_t* workspaceSize,
                                                               aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnScaledMaskedSoftmax(void* workspace, uint64_t workspaceSize,
                                               aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_SCALED_MASKED_SOFTMAX_H_ */
