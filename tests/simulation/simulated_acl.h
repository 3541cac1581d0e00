// A device's memory without the memory: addresses that the daemon's pools divide and lend, the same
// in every run, and never touched.
#pragma once

#include <cstdint>

#include "server/device/acl/acl_library.h"

namespace opserve::simulation {

// The ACL libraries with simulated functions for memory of devices and for page-locked memory. They
// are for one thread. Loaded once per process.
const server::AclLibrary& SimulatedAcl();

// Page-locked memory that is taken now.
uint64_t SimulatedPinnedBytes();
// Whether no more of it is given from now on.
void RefusePinnedMemory(bool refuses);

}  // namespace opserve::simulation
