// Values of attributes: whether they are allowed, and as text.
#pragma once

#include <string>

#include "ops/catalog/operator_descriptor.h"

namespace opserve::catalog {

// Why a value of the attribute's type is not allowed: "5 is outside [0, 2]". Empty: it is.
std::string ProblemOf(const AttributeDescriptor& attribute, const AttributeValue& value);

// "none (0), mean (1), sum (2)": the names an attribute takes; empty if it has none.
std::string AttributeNamesText(const AttributeDescriptor& attribute);

// "1", "true", "[0, 1]", "mean", "FLOAT"; "" for std::monostate.
std::string ValueText(const AttributeValue& value);

// "an int64", "a list of bools".
absl::string_view TypeText(AttributeType type);

}  // namespace opserve::catalog
