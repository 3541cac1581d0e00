/* The ACL runtime ABI: start and end of ACL in a process, and everything of acl/acl_rt.h.
 *
 * Declares the functions of the host CANN, equal in names, values and layouts to CANN's ABI. */
#ifndef OPSERVE_ACL_ACL_H_
#define OPSERVE_ACL_ACL_H_

#include "acl/acl_rt.h"

/* Parts of CANN that can ask to be called with aclInit and aclFinalize; OTHER is for programs. */
typedef enum {
  ACL_REG_TYPE_ACL_MODEL = 0,
  ACL_REG_TYPE_ACL_OP_EXECUTOR = 1,
  ACL_REG_TYPE_ACL_OP_CBLAS = 2,
  ACL_REG_TYPE_ACL_OP_COMPILER = 3,
  ACL_REG_TYPE_ACL_TDT_CHANNEL = 4,
  ACL_REG_TYPE_ACL_TDT_QUEUE = 5,
  ACL_REG_TYPE_ACL_DVPP = 6,
  ACL_REG_TYPE_ACL_RETR = 7,
  ACL_REG_TYPE_OTHER = 0xFFFF
} aclRegisterCallbackType;

/* `configStr` holds the `len` bytes of the file given to aclInit; it is "" without one. */
typedef aclError (*aclInitCallbackFunc)(const char* configStr, size_t len, void* userData);
typedef aclError (*aclFinalizeCallbackFunc)(void* userData);

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

/* Calls `cbFunc` when ACL is started, or at once if it is. A code that it returns is the result of
 * that aclInit, which then has not started ACL; a call at once ignores it. The callback may use
 * ACL, but not aclInit, aclFinalize or these functions.
 *   100000  a null callback
 *   207012  there are 1024
 *   500000  the type is known but OTHER, and has a callback; to unregister: it is not registered */
ACL_FUNC_VISIBILITY aclError aclInitCallbackRegister(aclRegisterCallbackType type,
                                                     aclInitCallbackFunc cbFunc, void* userData);
ACL_FUNC_VISIBILITY aclError aclInitCallbackUnRegister(aclRegisterCallbackType type,
                                                       aclInitCallbackFunc cbFunc);
/* The same when ACL ends, before its work is stopped. ACL ends even if callbacks fail; the first
 * code that is not 0 is the result. */
ACL_FUNC_VISIBILITY aclError aclFinalizeCallbackRegister(aclRegisterCallbackType type,
                                                         aclFinalizeCallbackFunc cbFunc,
                                                         void* userData);
ACL_FUNC_VISIBILITY aclError aclFinalizeCallbackUnRegister(aclRegisterCallbackType type,
                                                           aclFinalizeCallbackFunc cbFunc);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACL_ACL_H_ */
