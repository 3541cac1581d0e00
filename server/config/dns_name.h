// Names of hosts as DNS has them.
#pragma once

#include "absl/strings/string_view.h"

namespace opserve::server {

// Whether `text` can be a host's name: labels of letters, digits, "-" and "_" between dots, 63
// characters at most each, 253 together. `allows_wildcard`: the first may be "*".
bool IsDnsName(absl::string_view text, bool allows_wildcard = false);

}  // namespace opserve::server
