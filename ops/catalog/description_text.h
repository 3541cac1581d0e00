// Descriptions as people write them: opserve.description.Operators in protobuf text format, of the
// build's own files and of operator packs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/catalog/operator_descriptor.h"

namespace opserve::catalog {

struct DescribedOperator {
  OperatorDescriptor descriptor;
  std::string json;  // for ReadDescriptor
  int line = 0;      // where its description begins, counted from 1
};

struct Descriptions {
  std::string library;   // "" if the text names none
  int library_line = 0;  // 0 likewise
  std::vector<DescribedOperator> operators;
};

// Reads a text of any origin. `path` is only its name in errors. kInvalidArgument: the first
// mistake, as "PATH:LINE: OPERATOR: PROBLEM".
absl::StatusOr<Descriptions> ReadDescriptions(const std::string& text, absl::string_view path);

}  // namespace opserve::catalog
