// Events as part of a capture: they order captured streams, and nothing waits for them outside.
#pragma once

#include <memory>

#include "ops/host_cann/runtime/capture.h"
#include "ops/host_cann/runtime/event.h"

namespace opserve::host_cann {

// 107028 if the event's latest record is part of a capture under way, 0 otherwise.
aclError CheckNotCaptured(Event& event);

// Records the event on a stream of `capture`. 207000: not an event of aclrtCreateEventExWithFlag.
aclError RecordCaptured(Event& event, const Stream& stream,
                        const std::shared_ptr<Capture>& capture);

// A wait of `stream` for the event where one of them or both are captured; `*is_captured` says that
// it is such a wait. The stream joins the event's capture, if it is part of none.
//   107024 the event was recorded outside    107031 a default stream    107032 two captures, which
//   are both invalid then    207000 not an event of aclrtCreateEventExWithFlag
//   507903 the capture is invalid
aclError WaitCaptured(Event& event, const std::shared_ptr<Stream>& stream, bool* is_captured);

}  // namespace opserve::host_cann
