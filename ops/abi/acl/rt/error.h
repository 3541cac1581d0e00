/* Errors of threads, failed tasks and faulty devices. Included through acl/acl_rt.h, which states
 * the rules for all functions. */
#ifndef OPSERVE_ACL_RT_ERROR_H_
#define OPSERVE_ACL_RT_ERROR_H_

#include "acl/rt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Latest error code of this thread's calls, and the same with reset to 0. `level` is
 * ACL_RT_THREAD_LEVEL. */
ACL_FUNC_VISIBILITY aclError aclrtPeekAtLastError(aclrtLastErrLevel level);
ACL_FUNC_VISIBILITY aclError aclrtGetLastError(aclrtLastErrLevel level);

/* Calls `callback` for every task that fails, on a thread of the runtime, possibly several at once.
 * Up to 1024 may be registered (207012); one that is registered again is still called once, and
 * unregistering an unknown one has no effect. Unregistering does not wait for a running one. No
 * exception may leave it. 107000: null. */
ACL_FUNC_VISIBILITY aclError
aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback);
ACL_FUNC_VISIBILITY aclError
aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback);
/* Deprecated: a single one, replaced by each call; null removes it. */
ACL_FUNC_VISIBILITY aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback);

/* The failed task. Valid inside the callback only; 0xFFFFFFFF where it is not known. */
ACL_FUNC_VISIBILITY uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo* info);
ACL_FUNC_VISIBILITY uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo* info);
ACL_FUNC_VISIBILITY uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo* info);
ACL_FUNC_VISIBILITY uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo* info);
ACL_FUNC_VISIBILITY uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo* info);
/* Id of the task this thread queued last. */
ACL_FUNC_VISIBILITY aclError aclrtGetThreadLastTaskId(uint32_t* taskId);

/* Kind of the device's latest fault; asked before an abort or reset. */
ACL_FUNC_VISIBILITY aclError aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo* errorInfo);
/* Aborts all streams of the device. `timeout` in ms, 0 for ever, at most 2160000. Other calls that
 * queue or wait return 107022 meanwhile. 107020: the running tasks did not end in time. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout);
/* Calls `callback` before and after such an abort, on its thread, by name as
 * aclrtRegDeviceStateCallback. The first code that is not 0 ends the abort and is its result. */
ACL_FUNC_VISIBILITY aclError aclrtSetDeviceTaskAbortCallback(const char* regName,
                                                             aclrtDeviceTaskAbortCallback callback,
                                                             void* args);
/* After the abort, with the error that aclrtGetErrorVerbose gave before it. 207000: nothing that
 * can be repaired. */
ACL_FUNC_VISIBILITY aclError aclrtRepairError(int32_t deviceId, const aclrtErrorInfo* errorInfo);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACL_RT_ERROR_H_ */
