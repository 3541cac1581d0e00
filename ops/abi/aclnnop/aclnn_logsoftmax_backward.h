/* Gradient of the logarithm of softmax. */
#ifndef OPSERVE_ACLNNOP_ACLNN_LOGSOFTMAX_BACKWARD_H_
#define OPSERVE_ACLNNOP_ACLNN_LOGSOFTMAX_BACKWARD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 *   out = gradOutput - exp(output) * (sum of gradOutput over axis dim)
 * `output` is the forward result. gradOutput and output have one type of FLOAT, FLOAT16 and BF16;
 * out is any of these or DOUBLE. All three have the same shape, rank up to 8. -n <= dim < n, where
 * n is the rank, or 1 for a 0-d tensor.
 * 161001: a null pointer. 161002: a type, shape, rank or dim outside of these rules; if gradOutput
 * or output is empty nothing is checked and the executor does nothing. */
ACLNN_API aclnnStatus aclnnLogSoftmaxBackwardGetWorkspaceSize(const aclTensor* gradOutput,
                                                              const aclTensor* output, int64_t dim,
                                                              aclTensor* out,
                                                              uint64_t* workspaceSize,
                                                              aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null
 * if that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnLogSoftmaxBackward(void* workspace, uint64_t workspaceSize,
                                              aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_LOGSOFTMAX_BACKWARD_H_ */
