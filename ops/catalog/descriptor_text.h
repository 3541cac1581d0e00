// Descriptors from descriptions: JSON of opserve.description.Operator (description.proto), which
// the build makes of the text files. JSON, because the host CANN reads it too and has no protobuf.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/catalog/operator_descriptor.h"

namespace opserve::catalog {

// A field of a description: one of Operator, and in it one of Argument or Golden. Names are those
// of description.proto; an index is -1 where the field is not repeated.
struct DescriptionPlace {
  const char* field = nullptr;  // null: the description as a whole
  int index = -1;
  const char* part = nullptr;  // null: the field as a whole
  int part_index = -1;
};

// Reads the JSON of one Operator as protobuf writes it, so that each field has its type; others
// throw. The description itself may be of any origin: that rules, bounds, defaults and golden cases
// fit the arguments they are of is checked. kInvalidArgument: the problem, with the operator's name
// and the argument or rule; then *place, if it is not null, is the field that has it.
absl::StatusOr<OperatorDescriptor> ReadDescriptor(absl::string_view json,
                                                  DescriptionPlace* place = nullptr);

}  // namespace opserve::catalog
