// Files that a configuration names.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace opserve::server {

// The whole of a file. kNotFound: it cannot be read; the message is the system's reason.
absl::StatusOr<std::string> ReadFile(const std::string& path);

}  // namespace opserve::server
