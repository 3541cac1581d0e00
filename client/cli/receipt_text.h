// A receipt for people.
#pragma once

#include <string>

#include "opserve/v1/operator_service.pb.h"

namespace opserve::cli {

// A table of the stages' times and shares, then the call's device and its costs.
std::string FormatReceipt(const v1::Receipt& receipt);

}  // namespace opserve::cli
