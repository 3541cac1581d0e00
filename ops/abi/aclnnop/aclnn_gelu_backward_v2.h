/* Gradient of GELU, exact or approximated, with respect to its input. */
#ifndef OPSERVE_ACLNNOP_ACLNN_GELU_BACKWARD_V2_H_
#define OPSERVE_ACLNNOP_ACLNN_GELU_BACKWARD_V2_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * gradInput = gradOutput * the derivative of GELU at self:
 * none:  of 0.5 * x * (1 + erf(x / sqrt(2)))
 * tanh:  of 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))
 * The tensors broadcast and are promoted to a common dtype.
 * gradOutput, self: FLOAT, FLOAT16, BF16. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnGeluBackwardV2GetWorkspaceSize(const aclTensor* gradOutput,
                                                          const aclTensor* self, char* approximate,
                                                          aclTensor* gradInput,
                                                          uint64_t* workspaceSize,
                                                          aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnGeluBackwardV2(void* workspace, uint64_t workspaceSize,
                                          aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_GELU_BACKWARD_V2_H_ */
