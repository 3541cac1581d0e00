/* The ACL runtime ABI: start and end of ACL in a process, and everything of acl/acl_rt.h.
 *
 * Declares what the host CANN implements, equal in names, values and layouts to CANN's ABI. */
#ifndef OPSERVE_ACL_ACL_H_
#define OPSERVE_ACL_ACL_H_

#include "acl/acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Starts ACL. `configPath`: a JSON file, or null or "" for none. Of its keys err_msg_mode has an
 * effect: "0", messages by thread (the default), or "1", messages of the process.
 *   100002  already started; harmless, but counted (aclFinalizeReference). The configuration of the
 *           first start stays
 *   100000  the environment holds a malformed value
 *   200006  another err_msg_mode
 *   100003  the file cannot be read      100006  it is not JSON of at most ten levels */
ACL_FUNC_VISIBILITY aclError aclInit(const char* configPath);

/* Ends ACL, however often it was started. Devices keep what the caller did not release. aclInit may
 * follow. 100037: not started. */
ACL_FUNC_VISIBILITY aclError aclFinalize(void);

/* Takes back one aclInit and ends ACL with the last one. Writes the starts that remain to
 * `refCount` unless it is null. 100037: not started. */
ACL_FUNC_VISIBILITY aclError aclFinalizeReference(uint64_t* refCount);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACL_ACL_H_ */
