// Descriptors from descriptions: JSON of opserve.description.Operator (description.proto), which
// the build makes of the text files. JSON, because the host CANN reads it too and has no protobuf.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/catalog/operator_descriptor.h"

namespace opserve::catalog {

// Reads the JSON of one Operator. kInvalidArgument: the message has the fault, the operator's name
// and the argument or rule.
absl::StatusOr<OperatorDescriptor> ReadDescriptor(absl::string_view json);

}  // namespace opserve::catalog
