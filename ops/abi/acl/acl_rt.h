/* The runtime: devices, contexts, streams, events, memory, callbacks and faults.
 *
 * Rules for every function:
 *  - 0 is success. A required pointer that is null gives 100000, a value out of range 107000,
 * unless said otherwise. After an error the out parameters are unchanged and nothing has happened;
 *    aclGetRecentErrMsg describes the error on the same thread.
 *  - Most work on the calling thread's current context, bound by aclrtSetDevice or
 *    aclrtSetCurrentContext. Without one: 107002. A stream of another context: 107003, but any
 *    stream may be synchronised and queried. A null function to call back: 107000. A stream,
 *    event or context that does not exist (any more): 107017.
 *  - Calls may be made from any number of threads at once. Destroying a handle while another thread
 *    is in a call with it is the caller's mistake.
 *  - Asynchronous functions return when the task is queued. An error of the task, when it runs, is
 *    returned by the next synchronising call on that stream, event or device, once.
 *  - A null stream is the default stream of the current context.
 *  - While a device is lost, all calls that need it return its code (such as 507010) until it has
 *    been reset and set again.
 *  - Times in ms: -1 waits for ever; 0 and other negative values are refused with 107000. */
#ifndef OPSERVE_ACL_ACL_RT_H_
#define OPSERVE_ACL_ACL_RT_H_

#include "acl/acl_rt_allocator.h"
#include "acl/rt/device.h"
#include "acl/rt/error.h"
#include "acl/rt/memory.h"
#include "acl/rt/model_ri.h"
#include "acl/rt/stream.h"
#include "acl/rt/types.h"

#endif /* OPSERVE_ACL_ACL_RT_H_ */
