/* Gradient of an embedding with respect to its table. */
#ifndef OPSERVE_ACLNNOP_ACLNN_EMBEDDING_DENSE_BACKWARD_H_
#define OPSERVE_ACLNNOP_ACLNN_EMBEDDING_DENSE_BACKWARD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * out[indices] += grad, row by row, from zero; rows of paddingIdx get nothing. With scaleGradByFreq
 * each row is divided by how often its index occurs. Sums are taken in float32 in a fixed order.
 * grad: FLOAT, FLOAT16, BF16. indices: INT8, UINT8, INT16, INT32, INT64. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnEmbeddingDenseBackwardGetWorkspaceSize(
    const aclTensor* grad, const aclTensor* indices, uint64_t numWeights, uint64_t paddingIdx,
    bool scaleGradByFreq, const aclTensor* out, uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnEmbeddingDenseBackward(void* workspace, uint64_t workspaceSize,
                                                  aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_EMBEDDING_DENSE_BACKWARD_H_ */
