/* Capture and replay of streams. Included through acl/acl_rt.h, which states the rules for all
 * functions.
 *
 * Between begin and end, tasks queued on a captured stream are recorded in a graph and not run. The
 * addresses and sizes of the moment are frozen. A replay runs the recorded tasks as one task of the
 * stream it is queued on. Whoever replays keeps the memory, and all else that the tasks use, where
 * it was.
 *
 * A stream that waits for an event recorded on a captured stream joins its capture (107031: a
 * default stream cannot), and must be joined back by an event before the end (107025). Only events
 * of aclrtCreateEventExWithFlag can be recorded on captured streams and waited for there (207000);
 * one that was recorded outside the capture gives 107024, one of another capture 107032.
 *
 * While a stream is captured it cannot be synchronised, queried or destroyed (107027), nor can its
 * device and context be synchronised, nor a recorded event be queried or waited for on the host
 * (107028). Copies that touch host memory must find it page-locked (107027). Synchronous copies and
 * fills are refused as the mode says: 107030, and 107041 for an asynchronous copy with memory that
 * is not page-locked, on a stream that is not captured.
 *
 *   GLOBAL        on every thread of the context; the capturing thread may, in the mode RELAXED of
 *                 its own (aclmdlRICaptureThreadExchangeMode); others, in RELAXED or THREAD_LOCAL
 *   THREAD_LOCAL  on the thread that began the capture, unless its own mode is RELAXED
 *   RELAXED       nowhere
 *
 * A task that cannot be recorded (207005: too many) and a wait across captures invalidate a
 * capture: its streams take no tasks any more (507903) until it has ended. */
#ifndef OPSERVE_ACL_RT_MODEL_RI_H_
#define OPSERVE_ACL_RT_MODEL_RI_H_

#include "acl/rt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- capture ---- */

/* Tasks that are queued on `stream` from now on are recorded; those queued before run as ever.
 * 100000: null stream. 107027: it is captured. 207000: a default stream, or on the products of 910.
 */
ACL_FUNC_VISIBILITY aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode);
/* State of the capture that a stream is part of, and its graph; null for none. Either pointer may
 * be null, not both (100000). */
ACL_FUNC_VISIBILITY aclError aclmdlRICaptureGetInfo(aclrtStream stream,
                                                    aclmdlRICaptureStatus* status,
                                                    aclmdlRI* modelRI);
/* Ends the capture of the stream that it began on. After an error, too, unless it is 107029: the
 * stream is not captured, or 107036: the capture began on another stream; the graph is then gone
 * and `modelRI` null. 107038: another thread began it, not in mode RELAXED. 507903: invalidated.
 * 107025: a stream has not been joined back. 107033: a group of tasks is open. */
ACL_FUNC_VISIBILITY aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI* modelRI);
/* Exchanges the calling thread's own mode, at first GLOBAL, with `*mode`. */
ACL_FUNC_VISIBILITY aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode* mode);

/* ---- groups of tasks that can be replaced ---- */

/* Operators' kernels that are captured on `stream` between the two make a group; its handle lives
 * as long as the graph. 107029: the stream is not captured. 107033: a group is open, or none.
 * 507009: any other task in between. 507903: invalidated. */
ACL_FUNC_VISIBILITY aclError aclmdlRICaptureTaskGrpBegin(aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclmdlRICaptureTaskGrpEnd(aclrtStream stream, aclrtTaskGrp* handle);
/* Kernels that are queued on `stream` between the two replace those of the group, one by one, when
 * their turn on the stream comes; as many as the group has (507000 at the end, and nothing is
 * replaced). 107027: the stream is captured. 107033: an update of the stream or the group is under
 * way, or none. 107017: the group's graph is gone. */
ACL_FUNC_VISIBILITY aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream stream,
                                                            aclrtTaskGrp handle);
ACL_FUNC_VISIBILITY aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream stream);

/* ---- replay. 107026: the graph is being captured. 107004: of another context. 107017: no graph
 * ----
 */

/* Queues a replay. 107027: the stream is captured. */
ACL_FUNC_VISIBILITY aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream);
/* Replays on the current context's default stream and waits, at most `timeout` ms. 507046: not
 * complete in time. */
ACL_FUNC_VISIBILITY aclError aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout);
/* Returns at once; queued replays run as queued. */
ACL_FUNC_VISIBILITY aclError aclmdlRIDestroy(aclmdlRI modelRI);
/* Writes the graph's tasks to the log, level INFO. */
ACL_FUNC_VISIBILITY aclError aclmdlRIDebugPrint(aclmdlRI modelRI);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACL_RT_MODEL_RI_H_ */
