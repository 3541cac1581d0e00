/* How operator functions are exported. */
#ifndef OPSERVE_ACLNNOP_ACLNN_UTIL_H_
#define OPSERVE_ACLNNOP_ACLNN_UTIL_H_

#define ACLNN_API __attribute__((visibility("default")))

#endif /* OPSERVE_ACLNNOP_ACLNN_UTIL_H_ */
