// The operators opserve knows.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ops/catalog/operator_descriptor.h"

namespace opserve::catalog {

// Each defined in the .cc of its name; valid for the life of the process.
const OperatorDescriptor& KlDivBackward();
const OperatorDescriptor& KlDivTargetBackward();
const OperatorDescriptor& L1LossBackward();
const OperatorDescriptor& LogSoftmaxBackward();
const OperatorDescriptor& MseLossBackward();

// All of them, by name.
absl::Span<const OperatorDescriptor* const> AllOperators();

// The operator of that exact name, or null.
const OperatorDescriptor* FindOperator(absl::string_view name);

}  // namespace opserve::catalog
