/* The host CANN's own functions, beyond the ACL ABI: faults on request, and counters. Exported by
 * its libascendcl.so; CANN's library does not have them, so look them up with dlsym. All are
 * thread-safe. */
#ifndef OPSERVE_HOST_CANN_H_
#define OPSERVE_HOST_CANN_H_

#include <stdint.h>

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds faults. The environment variable OPSERVE_HOST_FAULTS takes the same text at the start.
 *
 * Faults are separated by ';', their words by ',':
 *
 *   call=FUNCTION,code=CODE   calls of that function (acl..., aclrt..., aclnn...) do nothing and
 *                             return CODE; those that return a pointer return null
 *   call=FUNCTION,slow=US     they take US microseconds longer
 *   kernel=OPERATOR,code=CODE launches of that operator, "aclnnKlDivBackward" (* for all), run
 *                             nothing and fail with CODE when their turn comes; with `sticky`
 *                             the device keeps the fault: it is lost with that code
 *   kernel=OPERATOR,hang      they run until they are aborted, their device is reset or lost, or
 *                             the execution limit ends them (507034)
 *   kernel=OPERATOR,slow=US   they take US microseconds longer
 *   kernel=OPERATOR,wrong     they succeed, but every bit of their output is inverted
 *   copies,rate=BYTES         copies take at least as long as BYTES (64K, 2M, 1G) per second allows
 *   device=ID,lost            the device is lost: every call that needs it, and every task on it,
 *                             fails, with 507010 or `code=CODE`, until it has been reset by force
 *                             and set again; with `resets=N` only the N-th reset helps
 *
 * A fault on calls or kernels starts with the N-th one from now, `nth=N` (1), and holds for M of
 * them, `count=M` (1) or `count=all`. One on kernels may be for a device alone, `on=ID`.
 *
 * Example: "call=aclrtMalloc,nth=3,code=207001;kernel=aclnnKlDivBackward,hang"
 *
 * 0, or 100000 if the text is malformed; then nothing is added and aclGetRecentErrMsg names the
 * error. 107001: no such device. */
ACL_FUNC_VISIBILITY aclError opserveHostInjectFaults(const char* faults);

/* Removes the faults on calls, kernels and copies. Hanging kernels go on hanging, lost devices stay
 * lost. */
ACL_FUNC_VISIBILITY void opserveHostClearFaults(void);

typedef enum {
  OPSERVE_HOST_ALLOCATIONS = 0,        /* live device memory allocations */
  OPSERVE_HOST_ALLOCATED_BYTES = 1,    /* bytes they take from their devices */
  OPSERVE_HOST_STREAMS = 2,            /* live streams, without default streams */
  OPSERVE_HOST_EVENTS = 3,             /* live events */
  OPSERVE_HOST_CONTEXTS = 4,           /* live contexts, without default contexts */
  OPSERVE_HOST_PINNED_BYTES = 5,       /* live bytes of aclrtMallocHost */
  OPSERVE_HOST_REGISTERED_REGIONS = 6, /* registered host memory */
  OPSERVE_HOST_TENSORS = 7,            /* live aclTensor, aclScalar, arrays and lists */
  OPSERVE_HOST_EXECUTORS = 8,          /* live aclOpExecutor */
  OPSERVE_HOST_LAUNCHES = 9,           /* kernels queued so far, those of replays included */
  OPSERVE_HOST_CHARGED_LAUNCHES = 10,  /* calls so far that OPSERVE_HOST_LAUNCH_US is charged for */
  OPSERVE_HOST_GRAPHS = 11,            /* live graphs, those being captured included */
  OPSERVE_HOST_NUM_COUNTERS = 12
} opserveHostCounter;

/* A counter's value in the whole process. -1 for an unknown counter. */
ACL_FUNC_VISIBILITY int64_t opserveHostCount(opserveHostCounter counter);

/* ALLOCATIONS, ALLOCATED_BYTES or LAUNCHES of one device; -1 otherwise. */
ACL_FUNC_VISIBILITY int64_t opserveHostDeviceCount(int32_t deviceId, opserveHostCounter counter);

/* Calls of an ABI function so far, failed ones included. */
ACL_FUNC_VISIBILITY uint64_t opserveHostCalls(const char* function);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_HOST_CANN_H_ */
