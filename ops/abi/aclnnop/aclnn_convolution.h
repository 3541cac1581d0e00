/* Convolution of one to three dimensions. */
#ifndef OPSERVE_ACLNNOP_ACLNN_CONVOLUTION_H_
#define OPSERVE_ACLNNOP_ACLNN_CONVOLUTION_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * output[n, c, p] = bias[c] + the sum of input[n, :, window at p] * weight[c], the input padded
 * with zeros, channels of one group only. transposed runs the windows the other way round: it is
 * the gradient of a convolution with respect to its input. Sums are taken in float32 and rounded
 * once.
 * input, weight, bias: FLOAT, FLOAT16, BF16. Ranks up to 8.
 * 161001: a null pointer, but bias may be null. 161002: a type, shape, rank or attribute outside of
 * these rules. */
ACLNN_API aclnnStatus aclnnConvolutionGetWorkspaceSize(
    const aclTensor* input, const aclTensor* weight, const aclTensor* bias,
    const aclIntArray* stride, const aclIntArray* padding, const aclIntArray* dilation,
    bool transposed, const aclIntArray* outputPadding, const int64_t groups, aclTensor* output,
    int8_t cubeMathType, uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnConvolution(void* workspace, uint64_t workspaceSize,
                                       aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_CONVOLUTION_H_ */
