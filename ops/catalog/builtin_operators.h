// The descriptions of the operators that are built in, each as JSON (descriptor_text.h). Generated
// by make_operators.cc.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace opserve::catalog {

absl::Span<const absl::string_view> BuiltinOperators();

}  // namespace opserve::catalog
