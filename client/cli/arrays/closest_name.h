// Suggestions for misspelt names.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace opserve::cli {

// The name most like `wanted`, letter case aside; empty if none is near.
std::string ClosestName(absl::string_view wanted, const std::vector<std::string>& names);

// Complaint about a name that is not among `names`, with the name probably meant:
// `unknown operator "KlDivBackwrd"; did you mean KlDivBackward?`
std::string UnknownName(absl::string_view kind, absl::string_view wanted,
                        const std::vector<std::string>& names);

}  // namespace opserve::cli
