// The number of file descriptors the process may have.
#pragma once

#include <cstdint>

namespace opserve::server {

// Raises the soft limit to `wanted`, or as far as the hard limit lets it; never lowers it. Returns
// the soft limit there is then. For the start of the process.
uint64_t RaiseDescriptorLimit(uint64_t wanted);

}  // namespace opserve::server
