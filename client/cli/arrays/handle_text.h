// Handles of resident tensors, which are bytes, as people write and read them.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace opserve::cli {

// "5f1c09a2": two hexadecimal digits for each byte.
std::string FormatHandle(absl::string_view handle);

// The reverse, in upper or lower case. kInvalidArgument: anything else.
absl::StatusOr<std::string> ParseHandle(absl::string_view text);

}  // namespace opserve::cli
