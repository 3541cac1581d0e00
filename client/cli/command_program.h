// The command `opserve program`.
#pragma once

#include "CLI/App.hpp"
#include "client/cli/session.h"

namespace opserve::cli {

// Adds the command to `app`; parsing a command line that has it sets *command.
void AddProgramCommand(CLI::App& app, Command* command);

}  // namespace opserve::cli
