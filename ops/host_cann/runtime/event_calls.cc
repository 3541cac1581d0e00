// The ABI's event functions.
#include <chrono>

#include "acl/acl.h"
#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/capture_events.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/options.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

// The vendor allows neither together with another flag. Here they are known only to be refused.
constexpr uint32_t kLoneFlags = ACL_EVENT_EXTERNAL | ACL_EVENT_IPC;
constexpr uint32_t kEventFlags = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS |
                                 ACL_EVENT_TIME_LINE | ACL_EVENT_DEVICE_USE_ONLY;

constexpr uint64_t kMicrosecondsPerSecond = 1000000;

aclError CreateEvent(aclrtEvent* handle, uint32_t flags, Event::Form form) {
  static std::atomic<uint32_t> next_id{0};
  RETURN_IF_FAILED(RequireNotNull(handle, "event"));
  if (flags == 0 || (flags & ~(kEventFlags | kLoneFlags)) != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
                Concat("flag is ", flags, ", must be a combination of ACL_EVENT flags"));
  }
  if ((flags & kLoneFlags) != 0) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
                "there are no external or inter-process events");
  }
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  Device& device = context->device();
  // Taken before the event exists: its end returns it, whichever call or reset ends it.
  if (!device.events().Take(1)) {
    return Fail(ACL_ERROR_RT_NO_EVENT_RESOURCE, kExhausted,
                Concat("device ", device.id(), " has no event left of ", device.events().limit()));
  }
  *handle = Runtime::Get().events().Insert(std::make_shared<Event>(device, next_id++, flags, form));
  return ACL_SUCCESS;
}

aclError CheckSameDevice(const Event& event, const Stream& stream) {
  if (&event.device() == &stream.device()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
              Concat("event is of device ", event.device().id(), ", stream of device ",
                     stream.device().id()));
}

aclError RefuseEx(const Event& event) {
  if (event.form() != Event::Form::kEx) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
              "event was made by aclrtCreateEventExWithFlag");
}

// Whether the latest record has completed; `unrecorded` if there is none.
bool IsComplete(Event& event, bool unrecorded) {
  const std::shared_ptr<EventRecord> record = event.latest();
  return record == nullptr ? unrecorded : record->state() == EventRecord::State::kComplete;
}

aclError RequireSync(const Event& event) {
  if (event.has_flag(ACL_EVENT_SYNC)) return ACL_SUCCESS;
  // 207000 by the vendor's document.
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
              "event was made without ACL_EVENT_SYNC");
}

aclError RecordEvent(aclrtEvent handle, aclrtStream stream) {
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(UsableStream(stream, &target));
  std::shared_ptr<Event> event;
  RETURN_IF_FAILED(FindEvent(handle, &event));
  RETURN_IF_FAILED(CheckSameDevice(*event, *target));
  // In a capture the record becomes an edge of the graph; no task is queued.
  if (const std::shared_ptr<Capture> capture = target->capture()) {
    return RecordCaptured(*event, *target, capture);
  }
  auto record = std::make_shared<EventRecord>();
  RETURN_IF_FAILED(target->Enqueue(MakeRecordTask(record, event->flag())));
  // After the queueing, so that a refused record leaves the former one in place. Another thread may
  // query in between and see the former: the vendor leaves the order of calls on several threads to
  // the program.
  event->set_latest(std::move(record));
  return ACL_SUCCESS;
}

// The flag of one record or wait: 0, the default, or 1, external to a captured stream.
// External records and waits tie a graph to work outside it. Captures here have no such edges, so 1
// is refused, with a code that tells both reasons apart.
aclError CheckUseFlag(uint32_t flag, aclrtStream stream) {
  static_assert(ACL_EVENT_RECORD_EXTERNAL == ACL_EVENT_WAIT_EXTERNAL);
  if (!CurrentSoc().generation->flags_event_uses) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
                Concat(CurrentSoc().name, " has no flags for records and waits"));
  }
  if (flag > ACL_EVENT_RECORD_EXTERNAL) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
                Concat("flag is ", flag, ", must be 0 or 1"));
  }
  if (flag == ACL_EVENT_RECORD_DEFAULT) return ACL_SUCCESS;
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(UsableStream(stream, &target));
  if (target->capture() != nullptr) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
                "flag is 1, external, which captures do not have");
  }
  return Fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, kCallOrder,
              "flag is 1, external, and the stream is not being captured");
}

aclError SynchronizeEvent(aclrtEvent handle, int32_t timeout) {
  std::shared_ptr<Event> event;
  RETURN_IF_FAILED(FindEvent(handle, &event));
  RETURN_IF_FAILED(event->device().CheckUsable());
  // Its record is a place in a graph, which nothing completes until a replay; waiting would be for
  // ever.
  RETURN_IF_FAILED(CheckNotCaptured(*event));
  const std::shared_ptr<EventRecord> record = event->latest();
  // Never recorded: there is nothing to wait for.
  if (record == nullptr) return ACL_SUCCESS;
  if (!record->WaitUntilFinished(DeadlineAfterMs(timeout))) {
    return Fail(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, kSyncTimeout,
                Concat("event ", event->id(), " is not complete at the timeout"));
  }
  // Records finish on a lost device too, and their completion then means nothing.
  RETURN_IF_FAILED(event->device().CheckNotLost());
  if (record->state() == EventRecord::State::kAbandoned) {
    return Fail(
        ACL_ERROR_RT_STREAM_ABORT, kInternal,
        Concat("the record of event ", event->id(), " was dropped with its stream's tasks"));
  }
  // A failure of an earlier task of the stream, which CONTINUE mode lets the record pass.
  return record->TakeError();
}

aclError WaitEvent(aclrtStream stream, aclrtEvent handle, uint64_t limit_us) {
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(UsableStream(stream, &target));
  std::shared_ptr<Event> event;
  RETURN_IF_FAILED(FindEvent(handle, &event));
  if (!CurrentSoc().generation->waits_for_other_devices) {
    RETURN_IF_FAILED(CheckSameDevice(*event, *target));
  }
  RETURN_IF_FAILED(RequireSync(*event));
  bool is_captured = false;
  RETURN_IF_FAILED(WaitCaptured(*event, target, &is_captured));
  if (is_captured) return ACL_SUCCESS;
  // This form waits for a record that need not be queued yet, so there may be no record to hold on
  // to.
  if (event->flag() != nullptr) {
    return target->Enqueue(MakeWaitTask(event->flag(), event->pending_waits(), limit_us));
  }
  std::shared_ptr<EventRecord> record = event->latest();
  // aclrtCreateEvent takes its place at the first record, so a wait before it has nowhere to stand.
  if (record == nullptr && event->form() == Event::Form::kPlain) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kCallOrder,
                "event has not been recorded: call aclrtRecordEvent first");
  }
  // A complete record needs no task. One that completes after this look lets the task pass at once.
  if (record == nullptr || record->state() == EventRecord::State::kComplete) return ACL_SUCCESS;
  return target->Enqueue(MakeWaitTask(std::move(record), event->pending_waits(), limit_us));
}

// When the event completed. 507000: it has not been recorded. 107006: that is not known. 107028:
// the record is part of a capture under way.
aclError CompletionTime(aclrtEvent handle, std::string_view name, Clock::time_point* time) {
  std::shared_ptr<Event> event;
  RETURN_IF_FAILED(FindEvent(handle, &event));
  RETURN_IF_FAILED(CheckNotCaptured(*event));
  const std::shared_ptr<EventRecord> record = event->latest();
  if (record == nullptr) {
    return Fail(ACL_ERROR_RT_INTERNAL_ERROR, kCallOrder, Concat(name, " has not been recorded"));
  }
  std::string_view problem;
  if (!event->has_flag(ACL_EVENT_TIME_LINE)) {
    problem = " was made without ACL_EVENT_TIME_LINE";
  } else if (record->state() != EventRecord::State::kComplete) {
    problem = " is not complete";
  } else {
    *time = record->completed_at();
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, kCallOrder, Concat(name, problem));
}

}  // namespace
}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclError aclrtCreateEvent(aclrtEvent* event) {
  RETURN_IF_FAILED(EnterCall(__func__));
  // Events of the old call can do both.
  return CreateEvent(event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE, Event::Form::kPlain);
}

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return CreateEvent(event, flag, Event::Form::kFlag);
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return CreateEvent(event, flag, Event::Form::kEx);
}

aclError aclrtDestroyEvent(aclrtEvent event) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Event> found;
  RETURN_IF_FAILED(FindEvent(event, &found));
  // The events of a lost device end with the reset that recovers it.
  RETURN_IF_FAILED(found->device().CheckNotLost());
  if (!Runtime::Get().events().Remove(event)) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, kBadArgument, "event is not a live event");
  }
  found->device().events().Return(1);
  return ACL_SUCCESS;
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return RecordEvent(event, stream);
}

aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(CheckUseFlag(flag, stream));
  return RecordEvent(event, stream);
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(UsableStream(stream, &target));
  std::shared_ptr<Event> found;
  RETURN_IF_FAILED(FindEvent(event, &found));
  RETURN_IF_FAILED(RefuseEx(*found));
  RETURN_IF_FAILED(RequireSync(*found));
  RETURN_IF_FAILED(CheckSameDevice(*found, *target));
  // A graph keeps no events, so a replay would have nothing to reset.
  if (target->capture() != nullptr) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
                "the stream is being captured, where events are not reset");
  }
  return target->Enqueue(MakeResetTask(std::move(found)));
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(status, "status"));
  std::shared_ptr<Event> found;
  RETURN_IF_FAILED(FindEvent(event, &found));
  RETURN_IF_FAILED(found->device().CheckUsable());
  RETURN_IF_FAILED(CheckNotCaptured(*found));
  // Forms differ before the first record: those of aclrtCreateEventExWithFlag are complete, others
  // are not.
  const bool is_complete = IsComplete(*found, /*unrecorded=*/found->form() == Event::Form::kEx);
  *status = is_complete ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(status, "status"));
  std::shared_ptr<Event> found;
  RETURN_IF_FAILED(FindEvent(event, &found));
  RETURN_IF_FAILED(RefuseEx(*found));
  RETURN_IF_FAILED(found->device().CheckUsable());
  // The deprecated query calls an event without a record complete, whatever its form, and refuses
  // the newer form.
  *status = IsComplete(*found, /*unrecorded=*/true) ? ACL_EVENT_STATUS_COMPLETE
                                                    : ACL_EVENT_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus* status) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(status, "status"));
  std::shared_ptr<Event> found;
  RETURN_IF_FAILED(FindEvent(event, &found));
  RETURN_IF_FAILED(RefuseEx(*found));
  RETURN_IF_FAILED(found->device().CheckUsable());
  // Waits count until they have ended, those that are queued behind other tasks included.
  *status = *found->pending_waits() == 0 ? ACL_EVENT_WAIT_STATUS_COMPLETE
                                         : ACL_EVENT_WAIT_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return SynchronizeEvent(event, -1);
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(CheckTimeoutMs(timeout));
  return SynchronizeEvent(event, timeout);
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return WaitEvent(stream, event, EventWaitLimitUs());
}

aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout) {
  RETURN_IF_FAILED(EnterCall(__func__));
  if (timeout < 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
                Concat("timeout is ", timeout, ", must be at least 0"));
  }
  return WaitEvent(stream, event, static_cast<uint64_t>(timeout) * kMicrosecondsPerSecond);
}

aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t timeout,
                                      uint32_t flag) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(CheckUseFlag(flag, stream));
  return WaitEvent(stream, event, uint64_t{timeout} * kMicrosecondsPerSecond);
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(ms, "ms"));
  // Both handles before either time: a wrong argument is reported rather than a wrong state.
  for (const aclrtEvent handle : {startEvent, endEvent}) {
    std::shared_ptr<Event> event;
    RETURN_IF_FAILED(FindEvent(handle, &event));
    RETURN_IF_FAILED(CheckNotCaptured(*event));
  }
  Clock::time_point start, end;
  RETURN_IF_FAILED(CompletionTime(startEvent, "startEvent", &start));
  RETURN_IF_FAILED(CompletionTime(endEvent, "endEvent", &end));
  *ms = std::chrono::duration<float, std::milli>(end - start).count();
  return ACL_SUCCESS;
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(timestamp, "timestamp"));
  Clock::time_point time;
  RETURN_IF_FAILED(CompletionTime(event, "event", &time));
  // Microseconds of the steady clock, which starts with the machine: it stands in for the device's
  // start.
  *timestamp = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count());
  return ACL_SUCCESS;
}

aclError aclrtGetEventId(aclrtEvent event, uint32_t* eventId) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(eventId, "eventId"));
  std::shared_ptr<Event> found;
  RETURN_IF_FAILED(FindEvent(event, &found));
  *eventId = found->id();
  return ACL_SUCCESS;
}

aclError aclrtGetEventAvailNum(uint32_t* eventCount) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(eventCount, "eventCount"));
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  *eventCount = static_cast<uint32_t>(context->device().events().available());
  return ACL_SUCCESS;
}
