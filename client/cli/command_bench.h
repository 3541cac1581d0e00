// The command `opserve bench`.
#pragma once

#include "CLI/App.hpp"
#include "client/cli/session.h"

namespace opserve::cli {

// Adds the command to `app`; parsing a command line that has it sets *command.
void AddBenchCommand(CLI::App& app, Command* command);

}  // namespace opserve::cli
