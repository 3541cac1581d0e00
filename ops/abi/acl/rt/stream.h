/* Streams, events and host callbacks. Included through acl/acl_rt.h, which states the rules for all
 * functions. */
#ifndef OPSERVE_ACL_RT_STREAM_H_
#define OPSERVE_ACL_RT_STREAM_H_

#include "acl/rt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- streams: tasks run in the order they were queued; streams are unordered among each other
 * ---- */

/* Creates a stream in the current context. 207008: the device has no more. */
ACL_FUNC_VISIBILITY aclError aclrtCreateStream(aclrtStream* stream);
/* `priority` from the range below, larger numbers are lowered to its end; `flag` is a combination
 * of ACL_STREAM_*, other bits are ignored. */
ACL_FUNC_VISIBILITY aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority,
                                                         uint32_t flag);
/* The same with a configuration: made with zeros, filled in by attribute, and usable for any number
 * of streams until it is destroyed. WORK_ADDR_PTR and WORK_SIZE are kept without effect. 100000: a
 * null pointer, an unknown attribute, or a value of another size than its member; FLAG may have 4
 * bytes too. */
ACL_FUNC_VISIBILITY aclrtStreamConfigHandle* aclrtCreateStreamConfigHandle(void);
ACL_FUNC_VISIBILITY aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle* handle);
ACL_FUNC_VISIBILITY aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle* handle,
                                                     aclrtStreamConfigAttr attr,
                                                     const void* attrValue, size_t valueSize);
ACL_FUNC_VISIBILITY aclError aclrtCreateStreamV2(aclrtStream* stream,
                                                 const aclrtStreamConfigHandle* handle);
/* Smaller numbers have priority over larger ones. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetStreamPriorityRange(int32_t* leastPriority,
                                                               int32_t* greatestPriority);

/* Waits for the stream's tasks, then destroys it. 107000: a default stream. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyStream(aclrtStream stream);
/* Drops the tasks that have not started and stops a hung one, then destroys the stream. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyStreamForce(aclrtStream stream);

/* Waits until the stream has no tasks and returns the error of the last one that failed since the
 * last such call. 107023: the stream is being aborted. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeStream(aclrtStream stream);
/* The same for at most `timeout` ms. 507046: not finished in time; the tasks continue. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout);
/* Whether the stream has tasks, at once and without reporting their errors. */
ACL_FUNC_VISIBILITY aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status);

/* Drops the queued tasks and stops the running one: a hung kernel at once, other work when it has
 * ended. Tasks queued meanwhile are dropped too. The stream is usable afterwards, without errors.
 */
ACL_FUNC_VISIBILITY aclError aclrtStreamAbort(aclrtStream stream);

/* ACL_STOP_ON_FAILURE: once a task of any stream of the context has failed, its streams refuse new
 * tasks and drop the queued ones, and every synchronise returns the error. Once per stream;
 * a second call gives 107000. 207000: a null stream, on the products of 910 and 310P. */
ACL_FUNC_VISIBILITY aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode);
/* The attribute's member of `value`. FAILURE_MODE as above; FLOAT_OVERFLOW_CHECK is the overflow
 * switch; CACHE_OP_INFO can only be 0 here (207000); PRIORITY can only be read (207000). */
ACL_FUNC_VISIBILITY aclError aclrtSetStreamAttribute(aclrtStream stream,
                                                     aclrtStreamAttr stmAttrType,
                                                     aclrtStreamAttrValue* value);
ACL_FUNC_VISIBILITY aclError aclrtGetStreamAttribute(aclrtStream stream,
                                                     aclrtStreamAttr stmAttrType,
                                                     aclrtStreamAttrValue* value);

/* Streams that can still be created on the current device. */
ACL_FUNC_VISIBILITY aclError aclrtGetStreamAvailableNum(uint32_t* streamCount);
ACL_FUNC_VISIBILITY aclError aclrtStreamGetId(aclrtStream stream, int32_t* streamId);
ACL_FUNC_VISIBILITY aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t* flags);
ACL_FUNC_VISIBILITY aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t* priority);

/* Whether overflow is detected, 1 or 0 (107000: other values). Kept and reported; where results may
 * be infinite, which is the only mode here, there is none to detect. */
ACL_FUNC_VISIBILITY aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag);
ACL_FUNC_VISIBILITY aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag);

/* Calls `callback` after a stream has been created and before one is destroyed, by the functions
 * above. Otherwise as aclrtRegDeviceStateCallback. */
ACL_FUNC_VISIBILITY aclError aclrtRegStreamStateCallback(const char* regName,
                                                         aclrtStreamStateCallback callback,
                                                         void* args);

/* ---- words in memory; 207000 on the products of 910 and 310P ---- */

/* Queues a write of `value` to 8 bytes of device memory, aligned to 8. `flag` must be 0 (107000).
 */
ACL_FUNC_VISIBILITY aclError aclrtValueWrite(void* devAddr, uint64_t value, uint32_t flag,
                                             aclrtStream stream);
/* Queues a wait: later tasks of the stream start when the 8 bytes of device memory compare with
 * `value` as `flag`, one of ACL_STREAM_WAIT_VALUE_*, says, whatever has written them. */
ACL_FUNC_VISIBILITY aclError aclrtValueWait(void* devAddr, uint64_t value, uint32_t flag,
                                            aclrtStream stream);

/* ---- notifies: a record sets one, a wait takes it back; each record lets one wait pass ---- */

/* `flag` is one of ACL_NOTIFY_* (107000). 207009: the device has no more. */
ACL_FUNC_VISIBILITY aclError aclrtCreateNotify(aclrtNotify* notify, uint64_t flag);
/* Returns at once; queued records and waits finish as queued. 107017: not a live notify. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyNotify(aclrtNotify notify);
/* Queue a record, on a stream of any device, and a wait with reset. A wait beyond `timeout` seconds
 * (0: none) fails as a task with 107020. */
ACL_FUNC_VISIBILITY aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream,
                                                     uint32_t timeout);
ACL_FUNC_VISIBILITY aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t* notifyId);
/* Resets notifies at once. */
ACL_FUNC_VISIBILITY aclError aclrtNotifyBatchReset(aclrtNotify* notifies, size_t num);

/* ---- events ---- */

/* Creates an event for ordering streams and for timing (SYNC and TIME_LINE). 207007: no more. */
ACL_FUNC_VISIBILITY aclError aclrtCreateEvent(aclrtEvent* event);
/* With a combination of ACL_EVENT_* flags. 207000: EXTERNAL or IPC.
 *
 * The three functions' events differ before the first record. That of aclrtCreateEvent is not ready
 * and no stream can wait for it (107000). That of aclrtCreateEventWithFlag is not ready, and a wait
 * for it blocks until it is recorded; it then stays set until aclrtResetEvent. That of
 * aclrtCreateEventExWithFlag is complete, and aclrtQueryEvent, aclrtQueryEventWaitStatus and
 * aclrtResetEvent refuse it (207000). */
ACL_FUNC_VISIBILITY aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag);
ACL_FUNC_VISIBILITY aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag);
/* Returns at once, even if records or waits are pending; those finish as queued. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyEvent(aclrtEvent event);

/* Queues a record: the event completes when all earlier tasks of the stream have ended, well or
 * not. Recording again replaces the earlier record. 107000: stream and event of different
 * devices. */
ACL_FUNC_VISIBILITY aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);

/* Queues a reset: the event is as before its first record. 207000: an event of
 * aclrtCreateEventExWithFlag or without ACL_EVENT_SYNC. */
ACL_FUNC_VISIBILITY aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);

/* State of the latest record, at once, from any device. */
ACL_FUNC_VISIBILITY aclError aclrtQueryEventStatus(aclrtEvent event,
                                                   aclrtEventRecordedStatus* status);
/* Deprecated; the opposite polarity, and complete before the first record. */
ACL_FUNC_VISIBILITY aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status);
/* Whether all stream waits on the event have ended. */
ACL_FUNC_VISIBILITY aclError aclrtQueryEventWaitStatus(aclrtEvent event,
                                                       aclrtEventWaitStatus* status);

/* Waits for the latest record; returns at once if there is none. Returns the error of a task that
 * failed before the record on its stream, if no synchronise has reported it yet. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeEvent(aclrtEvent event);
/* The same for at most `timeout` ms. 507047: not complete in time. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout);

/* Queues a wait: later tasks of the stream start after the event's latest record, seen from this
 * call, has completed; after any record if aclrtCreateEventWithFlag made the event. The event may
 * be another device's, except on the products of 910 and 310P (107000). 207000: an event without
 * ACL_EVENT_SYNC. A wait beyond the limit of
 * aclrtSetOpWaitTimeout, or `timeout` seconds (0: none), fails as a task with 107020. */
ACL_FUNC_VISIBILITY aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);
ACL_FUNC_VISIBILITY aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event,
                                                             int32_t timeout);
/* aclrtRecordEvent, and the wait with a timeout, with a flag: ACL_EVENT_RECORD_DEFAULT or
 * ACL_EVENT_WAIT_DEFAULT. 107029: the EXTERNAL ones on a stream that is not captured. 207000: on
 * one that is, and on the products of 910 and 310P. */
ACL_FUNC_VISIBILITY aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream,
                                                      uint32_t flag);
ACL_FUNC_VISIBILITY aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event,
                                                          uint32_t timeout, uint32_t flag);

/* Milliseconds between two completed events with ACL_EVENT_TIME_LINE, negative if `endEvent`
 * completed first. 507000: not recorded. 107006: without that flag, or not complete. */
ACL_FUNC_VISIBILITY aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent,
                                                   aclrtEvent endEvent);
/* When the event completed, in microseconds. Codes as above. */
ACL_FUNC_VISIBILITY aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp);
ACL_FUNC_VISIBILITY aclError aclrtGetEventId(aclrtEvent event, uint32_t* eventId);
/* Events that can still be created on the current device. */
ACL_FUNC_VISIBILITY aclError aclrtGetEventAvailNum(uint32_t* eventCount);

/* ---- host callbacks: plain host work only; they must not allocate, free, launch or synchronise
 * through ACL ---- */

/* Names the thread (its pthread_self()) that will run the stream's callbacks in aclrtProcessReport.
 * A thread may serve many streams of one device (107000 for a second device); at most 1024 threads
 * (207012). 107011: the stream has one. */
ACL_FUNC_VISIBILITY aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream);
/* Ends that, before the stream is destroyed. Callbacks that have not run are dropped. 107015: the
 * stream has none; 107012: another thread's. */
ACL_FUNC_VISIBILITY aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream);
/* Queues a callback for the subscribed thread. With ACL_CALLBACK_BLOCK later tasks wait for its
 * end. 107015: the stream has no subscribed thread. */
ACL_FUNC_VISIBILITY aclError aclrtLaunchCallback(aclrtCallback fn, void* userData,
                                                 aclrtCallbackBlockType blockType,
                                                 aclrtStream stream);
/* Runs callbacks that are due on the calling thread; waits at most `timeout` ms for the first.
 * 100000: timeout 0 or below -1. 507012: none came. 107012: the thread is not subscribed. */
ACL_FUNC_VISIBILITY aclError aclrtProcessReport(int32_t timeout);

/* Queues a function that a thread of the runtime runs; later tasks wait for its end. No
 * subscription is needed; 107011 on a stream that has one. */
ACL_FUNC_VISIBILITY aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACL_RT_STREAM_H_ */
