/* Names of the status codes that aclnn functions return. 1xxxxx is the caller's fault, 361001 a
 * failed runtime call, 56xxxx a failure inside. */
#ifndef OPSERVE_ACLNN_OPDEV_OP_ERRNO_H_
#define OPSERVE_ACLNN_OPDEV_OP_ERRNO_H_

#include "aclnn/aclnn_base.h"

constexpr aclnnStatus ACLNN_SUCCESS = 0;

constexpr aclnnStatus ACLNN_ERR_PARAM_NULLPTR = 161001;
constexpr aclnnStatus ACLNN_ERR_PARAM_INVALID = 161002;
constexpr aclnnStatus ACLNN_ERR_RUNTIME_ERROR = 361001;

constexpr aclnnStatus ACLNN_ERR_INNER = 561000;
constexpr aclnnStatus ACLNN_ERR_INNER_INFERSHAPE_ERROR = 561001;
constexpr aclnnStatus ACLNN_ERR_INNER_TILING_ERROR = 561002;
constexpr aclnnStatus ACLNN_ERR_INNER_FIND_KERNEL_ERROR = 561003;
constexpr aclnnStatus ACLNN_ERR_INNER_CREATE_EXECUTOR = 561101;
constexpr aclnnStatus ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR = 561102;
constexpr aclnnStatus ACLNN_ERR_INNER_NULLPTR = 561103;
constexpr aclnnStatus ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE = 561104;
constexpr aclnnStatus ACLNN_ERR_INNER_KEY_CONFLICT = 561105;
constexpr aclnnStatus ACLNN_ERR_INNER_KEY_CONFILICT = ACLNN_ERR_INNER_KEY_CONFLICT;
constexpr aclnnStatus ACLNN_ERR_INNER_INVALID_IMPL_MODE = 561106;
constexpr aclnnStatus ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND = 561107;
constexpr aclnnStatus ACLNN_ERR_INNER_LOAD_JSON_FAILED = 561108;
constexpr aclnnStatus ACLNN_ERR_INNER_JSON_VALUE_NOT_FOUND = 561109;
constexpr aclnnStatus ACLNN_ERR_INNER_JSON_FORMAT_INVALID = 561110;
constexpr aclnnStatus ACLNN_ERR_INNER_JSON_DTYPE_INVALID = 561111;
constexpr aclnnStatus ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND = 561112;
constexpr aclnnStatus ACLNN_ERR_INNER_OP_FILE_INVALID = 561113;
constexpr aclnnStatus ACLNN_ERR_INNER_ATTR_NUM_OUT_OF_BOUND = 561114;
constexpr aclnnStatus ACLNN_ERR_INNER_ATTR_LEN_NOT_ENOUGH = 561115;
constexpr aclnnStatus ACLNN_ERR_INNER_INPUT_NUM_IN_JSON_TOO_LARGE = 561116;
constexpr aclnnStatus ACLNN_ERR_INNER_INPUT_JSON_IS_NULL = 561117;
constexpr aclnnStatus ACLNN_ERR_INNER_STATIC_WORKSPACE_INVALID = 561118;
constexpr aclnnStatus ACLNN_ERR_INNER_STATIC_BLOCK_DIM_INVALID = 561119;

#endif /* OPSERVE_ACLNN_OPDEV_OP_ERRNO_H_ */
