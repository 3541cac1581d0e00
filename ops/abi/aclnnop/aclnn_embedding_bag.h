/* Sums, means or greatest elements of bags of a table's rows. */
#ifndef OPSERVE_ACLNNOP_ACLNN_EMBEDDING_BAG_H_
#define OPSERVE_ACLNNOP_ACLNN_EMBEDDING_BAG_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * Bag b has the indices from offsets[b] up to the next offset, the last bag those up to the end or,
 * with includeLastOffset, up to the last offset, which begins no bag. offsets begins with 0 and
 * does not fall. output[b] is the sum (mode 0), the mean (1) or the greatest element by column (any
 * other mode) of the bag's rows, 0 for a bag without rows; rows of paddingIdx do not count.
 * perSampleWeights are factors of the rows, in mode 0 only. offset2bag: the bag of each index.
 * bagSize: the rows of each bag. maxIndices: where the greatest elements are; in other modes as
 * bagSize. scaleGradByFreq and sparse concern the gradient only; CANN supports false.
 * weight, output: FLOAT, FLOAT16, BF16 of rank 2; perSampleWeights, which may be null, likewise, of
 * indices' shape. indices, offsets: INT32, INT64 of rank 1. offset2bag, bagSize, maxIndices: INT64
 * if one of these is.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnEmbeddingBagGetWorkspaceSize(
    const aclTensor* weight, const aclTensor* indices, const aclTensor* offsets,
    bool scaleGradByFreq, int64_t mode, bool sparse, const aclTensor* perSampleWeights,
    bool includeLastOffset, int64_t paddingIdx, aclTensor* output, aclTensor* offset2bag,
    aclTensor* bagSize, aclTensor* maxIndices, uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnEmbeddingBag(void* workspace, uint64_t workspaceSize,
                                        aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_EMBEDDING_BAG_H_ */
