// Attributes as people write and read them.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/request.h"
#include "opserve/v1/operator.pb.h"

namespace opserve::cli {

// Reads an attribute's value: an integer or one of its names, "true"/"false", or a number,
// depending on its type. kInvalidArgument: anything else; the message lists the choices.
absl::StatusOr<NamedAttribute> ParseAttribute(const v1::AttributeDescriptor& attribute,
                                              absl::string_view text);

// "none (0), mean (1)", "true or false", "an integer from 0 to 3", "a number"
std::string DescribeChoices(const v1::AttributeDescriptor& attribute);

// The default: "mean (1)", "false", "0.5"
std::string DescribeDefault(const v1::AttributeDescriptor& attribute);

}  // namespace opserve::cli
