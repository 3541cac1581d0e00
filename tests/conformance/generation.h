// What the operators of the conformance set refuse on generations that have fewer types than the
// one it was written for, Atlas A2. Read from the operators' documents, not from the host CANN.
#pragma once

#include <string>

#include "tests/conformance/case.h"

namespace opserve::conformance {

// The status of a case's stage one on a chip ("Ascend310P3"). Throws std::invalid_argument for a
// chip of no known generation.
int32_t ExpectedStatus(const Case& of, const std::string& soc);

}  // namespace opserve::conformance
