// Telling registered callbacks about devices and streams that come and go.
#pragma once

#include "acl/acl.h"

namespace opserve::host_cann {

// Calls every registered callback, on this thread. For a reset the device's lifecycle stays locked,
// so that nothing sets it meanwhile.
void ReportDeviceState(int32_t device_id, aclrtDeviceState state);
void ReportStreamState(aclrtStream stream, aclrtStreamState state);

}  // namespace opserve::host_cann
