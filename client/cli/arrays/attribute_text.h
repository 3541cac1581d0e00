// Attributes as people write and read them.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/request.h"
#include "opserve/v1/operator.pb.h"

namespace opserve::cli {

// Reads an attribute's value, depending on its type: an integer or one of its names, "true" or
// "false", a number, a text, a dtype ("BF16", "bfloat16"), a scalar ("2", "0.5", "true",
// "2:INT32"), or a list ("[1,2]"; the brackets may be left out of one that is not empty).
// kInvalidArgument: anything else; the message lists the choices.
absl::StatusOr<NamedAttribute> ParseAttribute(const v1::AttributeDescriptor& attribute,
                                              absl::string_view text);

// "none (0), mean (1)", "true or false", "an integer from 0 to 3", "a number", "a list of numbers"
std::string DescribeChoices(const v1::AttributeDescriptor& attribute);

// The default: "mean (1)", "false", "0.5", "[1,2]", "1:FLOAT"; "none" if there is none.
std::string DescribeDefault(const v1::AttributeDescriptor& attribute);

}  // namespace opserve::cli
