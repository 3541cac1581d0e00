// The ACL libraries' error texts, fit for the eyes of tenants.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace opserve::server {

// CANN's texts tell people who debug CANN where they are: addresses, files by their whole paths,
// ids of processes and threads. The same text with addresses as "0x...", files by their names
// alone, and ids as "...".
std::string WithoutInternals(absl::string_view text);

}  // namespace opserve::server
