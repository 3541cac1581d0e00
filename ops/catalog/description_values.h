// Values as descriptions write them: of attributes, and tensors of golden cases.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/catalog/operator_descriptor.h"

namespace opserve::catalog {

// The value that `text` means for an attribute, one that the attribute allows: "2", "mean", "true",
// "[0, 1]", of a scalar also "DOUBLE 0.5". kInvalidArgument: the problem, behind `at`.
absl::StatusOr<AttributeValue> ReadValue(absl::string_view at, const AttributeDescriptor& attribute,
                                         absl::string_view text);

// "FLOAT [[1, 2], [3, 4]]", "INT64 empty[2,0]". The tensor has as many values as its shape says.
// kInvalidArgument likewise.
absl::StatusOr<GoldenCase::Tensor> ReadTensor(absl::string_view at, absl::string_view text);

}  // namespace opserve::catalog
