// The time that launches take on the host.
#pragma once

#include <cstdint>

namespace opserve::host_cann {

// Charges one launch to the calling thread: it is busy for OPSERVE_HOST_LAUNCH_US microseconds, as
// it is on a host that writes a launch for a device. Counts it also if that is 0.
void ChargeLaunch();

// Launches charged so far.
int64_t ChargedLaunches();

}  // namespace opserve::host_cann
