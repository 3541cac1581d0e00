// The flag --lease of commands that make or renew resident tensors.
#pragma once

#include "CLI/CLI.hpp"
#include "absl/time/time.h"

namespace opserve::cli {

// Adds it to `command`. `lease` lives as long as that, and stays as it is without the flag.
CLI::Option* AddLeaseFlag(CLI::App* command, absl::Duration* lease);

}  // namespace opserve::cli
