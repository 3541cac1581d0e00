/* Drops elements at random. */
#ifndef OPSERVE_ACLNNOP_ACLNN_DROPOUT_H_
#define OPSERVE_ACLNNOP_ACLNN_DROPOUT_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * In training out = input / (1 - p) where the mask's bit is 1, else 0, each bit 1 with probability
 * 1 - p. Without training, or with p 0, out = input; with p 1 it is 0; maskOut is left alone then.
 * Equal seeds and offsets give equal masks.
 * input: FLOAT, FLOAT16, BF16. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnDropoutGetWorkspaceSize(const aclTensor* input, double p, bool train,
                                                   int64_t seed, int64_t offset, aclTensor* out,
                                                   aclTensor* maskOut, uint64_t* workspaceSize,
                                                   aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnDropout(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                   aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_DROPOUT_H_ */
