// The ACL libraries' error texts, fit for the eyes of tenants.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace opserve::server {

// CANN's texts carry details for those that debug CANN: addresses, files by their whole paths, ids
// of processes and threads. Returns the text with addresses as "0x...", files by their names alone,
// and ids as "...".
std::string WithoutInternals(absl::string_view text);

}  // namespace opserve::server
