#include "ops/host_cann/runtime/capture_events.h"

#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

// The capture under way that the event's latest record is part of; null: none.
std::shared_ptr<Capture> CaptureOf(const Event::CapturedRecord& record) {
  std::shared_ptr<Capture> capture = record.capture.lock();
  // The mark outlives the capture on purpose: nothing walks the events when one ends, so each use
  // looks here.
  if (capture == nullptr || capture->state() == Capture::State::kEnded) return nullptr;
  return capture;
}

aclError RequireEx(const Event& event) {
  if (event.form() == Event::Form::kEx) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
              "event was not made by aclrtCreateEventExWithFlag, and the stream is being captured");
}

aclError Join(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Capture>& capture,
              const Progress& progress) {
  if (stream->config().is_default) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT, kCallOrder,
                "stream is a default stream, which cannot wait for an event of a capture");
  }
  // The capture holds the stream after this, and the stream the capture; Capture::End breaks the
  // circle.
  RETURN_IF_FAILED(stream->EnterCapture(capture));
  const aclError code = capture->WaitForEvent(stream, progress);
  // Invalidated or ended between the two: the stream must not stay in a capture that nothing ends.
  if (code != ACL_SUCCESS) stream->LeaveCapture(*capture);
  return code;
}

}  // namespace

aclError CheckNotCaptured(Event& event) {
  if (CaptureOf(event.captured()) == nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_EVENT_CAPTURED, kCallOrder,
              Concat("event ", event.id(), " is recorded in a capture"));
}

aclError RecordCaptured(Event& event, const Stream& stream,
                        const std::shared_ptr<Capture>& capture) {
  RETURN_IF_FAILED(RequireEx(event));
  event.set_captured({capture, capture->RecordEvent(stream)});
  return ACL_SUCCESS;
}

aclError WaitCaptured(Event& event, const std::shared_ptr<Stream>& stream, bool* is_captured) {
  const Event::CapturedRecord record = event.captured();
  const std::shared_ptr<Capture> of_event = CaptureOf(record);
  const std::shared_ptr<Capture> of_stream = stream->capture();
  *is_captured = of_event != nullptr || of_stream != nullptr;
  if (!*is_captured) return ACL_SUCCESS;
  // The event alone is captured: the wait is the fork by which the stream joins.
  if (of_stream == nullptr) return Join(stream, of_event, record.progress);
  if (of_event == of_stream) return of_stream->WaitForEvent(stream, record.progress);
  if (of_event != nullptr) {
    // An edge between two graphs cannot be kept by either, so both are void.
    of_event->Invalidate();
    of_stream->Invalidate();
    return Fail(ACL_ERROR_STREAM_CAPTURE_CONFLICT, kCallOrder,
                Concat("event ", event.id(), " and stream ", stream->id(),
                       " are part of different captures"));
  }
  RETURN_IF_FAILED(RequireEx(event));
  if (event.latest() == nullptr)
    return ACL_SUCCESS;  // never recorded, so there is nothing to wait for
  // Replays could not wait for it: the record happened once, before them.
  return Fail(
      ACL_ERROR_RT_CAPTURE_DEPENDENCY, kCallOrder,
      Concat("event ", event.id(), " was recorded outside the capture of stream ", stream->id()));
}

}  // namespace opserve::host_cann
