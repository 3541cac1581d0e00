/* Layer normalisation. */
#ifndef OPSERVE_ACLNNOP_ACLNN_LAYER_NORM_H_
#define OPSERVE_ACLNNOP_ACLNN_LAYER_NORM_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stage one: checks the arguments, reports workspace bytes and creates an executor; no device work.
 * out = (input - mean) / sqrt(variance + eps) * weightOptional + biasOptional, with mean and biased
 * variance over the trailing axes normalizedShape. Sums are taken in float32. weightOptional and
 * biasOptional have input's dtype or FLOAT.
 * input, weightOptional, biasOptional, meanOutOptional, rstdOutOptional: FLOAT, FLOAT16, BF16.
 * Ranks up to 8.
 * 161001: a null pointer, but weightOptional, biasOptional, meanOutOptional and rstdOutOptional may
 * be null. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnLayerNormGetWorkspaceSize(
    const aclTensor* input, const aclIntArray* normalizedShape, const aclTensor* weightOptional,
    const aclTensor* biasOptional, double eps, aclTensor* out, aclTensor* meanOutOptional,
    aclTensor* rstdOutOptional, uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two: queues the computation on `stream` and returns. `workspace` is at least the reported
 * bytes of device memory, 64-byte aligned, free to reuse once the stream has passed; may be null if
 * that is 0. Frees the executor, on failure as well, unless it is repeatable.
 * 161001: executor null, or workspace null with a size above 0. */
ACLNN_API aclnnStatus aclnnLayerNorm(void* workspace, uint64_t workspaceSize,
                                     aclOpExecutor* executor, aclrtStream stream);

/* Stage one. Layer normalisation with a choice of precision.
 * out = (input - mean) / sqrt(variance + eps) * weightOptional + biasOptional, with mean and biased
 * variance over the trailing axes normalizedShape. Sums are taken in float32. weightOptional and
 * biasOptional have input's dtype or FLOAT.
 * input, weightOptional, biasOptional, meanOutOptional, rstdOutOptional: FLOAT, FLOAT16, BF16.
 * Ranks up to 8.
 * 161001: a null pointer, but weightOptional, biasOptional, meanOutOptional and rstdOutOptional may
 * be null. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnLayerNormWithImplModeGetWorkspaceSize(
    const aclTensor* input, const aclIntArray* normalizedShape, const aclTensor* weightOptional,
    const aclTensor* biasOptional, double eps, aclTensor* out, aclTensor* meanOutOptional,
    aclTensor* rstdOutOptional, int32_t implMode, uint64_t* workspaceSize,
    aclOpExecutor** executor);

/* Stage two, as above. */
ACLNN_API aclnnStatus aclnnLayerNormWithImplMode(void* workspace, uint64_t workspaceSize,
                                                 aclOpExecutor* executor, aclrtStream stream);

/* Stage one. Layer normalisation by a faster kernel.
 * out = (input - mean) / sqrt(variance + eps) * weightOptional + biasOptional, with mean and biased
 * variance over the trailing axes normalizedShape. Sums are taken in float32. weightOptional and
 * biasOptional have input's dtype or FLOAT.
 * input, weightOptional, biasOptional, meanOutOptional, rstdOutOptional: FLOAT, FLOAT16, BF16.
 * Ranks up to 8.
 * 161001: a null pointer, but weightOptional, biasOptional, meanOutOptional and rstdOutOptional may
 * be null. 161002: a type, shape, rank or attribute outside of these rules. */
ACLNN_API aclnnStatus aclnnFastLayerNormGetWorkspaceSize(
    const aclTensor* input, const aclIntArray* normalizedShape, const aclTensor* weightOptional,
    const aclTensor* biasOptional, double eps, aclTensor* out, aclTensor* meanOutOptional,
    aclTensor* rstdOutOptional, uint64_t* workspaceSize, aclOpExecutor** executor);

/* Stage two, as above. */
ACLNN_API aclnnStatus aclnnFastLayerNorm(void* workspace, uint64_t workspaceSize,
                                         aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNNOP_ACLNN_LAYER_NORM_H_ */
