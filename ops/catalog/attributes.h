// Attributes of a call: from what the caller wrote to values in the descriptor's order.
#pragma once

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "ops/catalog/operator_descriptor.h"
#include "opserve/v1/operator_service.pb.h"

namespace opserve::catalog {

using AttributeValues = absl::InlinedVector<AttributeValue, 4>;

// One value per attribute of `descriptor`, in its order; defaults where `given` has none.
// kInvalidArgument (error.h): an unknown attribute, one given twice, a value of another type or out
// of range, an unknown name.
absl::StatusOr<AttributeValues> ResolveAttributes(
    const OperatorDescriptor& descriptor,
    const google::protobuf::RepeatedPtrField<v1::NamedAttribute>& given);

// "none (0), mean (1), sum (2)": the names an attribute takes; empty if it has none.
std::string AttributeNamesText(const AttributeDescriptor& attribute);

}  // namespace opserve::catalog
