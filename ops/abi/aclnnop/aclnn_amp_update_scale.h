/* Moves the scale of the loss in mixed precision. */
#ifndef OPSERVE_ACLNNOP_ACLNN_AMP_UPDATE_SCALE_H_
#define OPSERVE_ACLNNOP_ACLNN_AMP_UPDATE_SCALE_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * If foundInf is not 0: updatedScale = currentScale * backoffFactor and the tracker becomes 0.
 * Otherwise the tracker grows by 1; when it reaches growthInterval the scale is multiplied by
 * growthFactor, unless it would overflow, and the tracker becomes 0.
 * currentScale, foundInf: FLOAT, FLOAT16, BF16. growthTracker: INT32. Ranks up to 8.
 * 161001: a null pointer. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnAmpUpdateScaleGetWorkspaceSize(
    const aclTensor* currentScale, const aclTensor* growthTracker, const aclTensor* foundInf,
    double growthFactor, double backoffFactor, int64_t growthInterval,
    const aclTensor* updatedScale, const aclTensor* updatedGrowthTracker, uint64_t* workspaceSize,
    aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnAmpUpdateScale(void* workspace, uint64_t workspaceSize,
                                          aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_AMP_UPDATE_SCALE_H_ */
