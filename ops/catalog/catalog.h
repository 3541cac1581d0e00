// The operators opserve knows, made of the descriptions beside this file. Thread-safe.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ops/catalog/operator_descriptor.h"

namespace opserve::catalog {

// All of them, by name; valid for the life of the process.
absl::Span<const OperatorDescriptor* const> AllOperators();

// The operator of that exact name, or null.
const OperatorDescriptor* FindOperator(absl::string_view name);

// The operator of that function on the ABI ("aclnnAdd"), or null.
const OperatorDescriptor* FindFunction(absl::string_view function);

}  // namespace opserve::catalog
