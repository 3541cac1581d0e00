/* Takes the normalized sinc. */
#ifndef OPSERVE_ACLNNOP_ACLNN_SINC_H_
#define OPSERVE_ACLNNOP_ACLNN_SINC_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: out = sin(pi * self) / (pi * self), and 1 where self is 0.
 * 161001: a null pointer. 161002: a type, shape or rank outside of the description's rules. */
ACLNN_API aclnnStatus aclnnSincGetWorkspaceSize(const aclTensor* self, aclTensor* out,
                                                uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. */
ACLNN_API aclnnStatus aclnnSinc(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_SINC_H_ */
