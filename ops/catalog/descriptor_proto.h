// Descriptors in their wire form, the answer of ListOperators.
#pragma once

#include "ops/catalog/operator_descriptor.h"
#include "opserve/v1/operator.pb.h"

namespace opserve::catalog {

// All of `descriptor` but `available`, which only the daemon knows.
v1::OperatorDescriptor ToProto(const OperatorDescriptor& descriptor);

}  // namespace opserve::catalog
