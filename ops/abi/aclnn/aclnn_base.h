/* The common declarations of all aclnn operator headers. */
#ifndef OPSERVE_ACLNN_ACLNN_BASE_H_
#define OPSERVE_ACLNN_ACLNN_BASE_H_

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Prepare the operator libraries, and end their use, once per process. Not needed where aclInit
 * and aclFinalize are called. `configPath`: a configuration file or null. 161002: the file cannot
 * be read. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInit(const char* configPath);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFinalize();

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACLNN_ACLNN_BASE_H_ */
