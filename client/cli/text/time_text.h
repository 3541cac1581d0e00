// Times as people write and read them, in texts and flags.
#pragma once

#include <string>

#include "CLI/CLI.hpp"
#include "absl/time/time.h"

namespace opserve::cli {

// A reader of flags, as CLI11 wants them: puts a positive time such as "30s" into *time and returns
// "", else the complaint.
std::string ReadTime(const std::string& text, absl::Duration* time);

// "2023-11-14 22:13:20 UTC"
std::string TimeText(absl::Time time);

// Adds --lease to `command`. `lease` lives as long as that, and stays as it is without the flag.
CLI::Option* AddLeaseFlag(CLI::App* command, absl::Duration* lease);

}  // namespace opserve::cli
