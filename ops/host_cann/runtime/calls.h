// Counting the ABI's calls and failing them on request. EnterCall (launch.h) builds on it.
#pragma once

#include <cstdint>
#include <string_view>

#include "acl/acl.h"

namespace opserve::host_cann {

// EnterCall for functions that answer even if the environment holds malformed settings: those that
// read errors.
aclError EnterErrorQuery(const char* function);

// Calls of the exported function so far, in any library of the host CANN.
uint64_t CountOfCalls(std::string_view function);

}  // namespace opserve::host_cann
