// Telling registered callbacks about devices and streams that come and go, and aborts of devices.
#pragma once

#include "acl/acl.h"

namespace opserve::host_cann {

// Calls every registered callback, on this thread. For a reset the device's lifecycle stays locked,
// so that nothing sets it meanwhile.
void ReportDeviceState(int32_t device_id, aclrtDeviceState state);
void ReportStreamState(aclrtStream stream, aclrtStreamState state);

// The same; stops at the first callback that fails and returns its code. `timeout_ms`: 0 for none.
aclError ReportTaskAbort(int32_t device_id, aclrtDeviceTaskAbortStage stage, uint32_t timeout_ms);

}  // namespace opserve::host_cann
