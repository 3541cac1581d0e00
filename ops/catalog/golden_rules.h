// Golden cases against the rules of their own operator, without a device.
#pragma once

#include <string>

#include "ops/catalog/operator_descriptor.h"

namespace opserve::catalog {

// How the rules contradict the case: they refuse the call, or give other shapes or dtypes than its
// outputs have. "": they agree. Requires tensors of accepted dtypes and attributes in range.
std::string ContradictionOf(const OperatorDescriptor& descriptor, const GoldenCase& golden);

}  // namespace opserve::catalog
