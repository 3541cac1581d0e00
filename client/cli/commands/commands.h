// The commands of the program, each in a source of its own.
#pragma once

#include "CLI/App.hpp"
#include "client/cli/commands/session.h"

namespace opserve::cli {

// Each adds a command to `app`; parsing a command line that has it sets *command.
void AddAdminCommand(CLI::App& app, Command* command);
void AddBenchCommand(CLI::App& app, Command* command);
void AddDoctorCommand(CLI::App& app, Command* command);
void AddOpsCommand(CLI::App& app, Command* command);
void AddProgramCommand(CLI::App& app, Command* command);
void AddRunCommand(CLI::App& app, Command* command);
void AddStatusCommand(CLI::App& app, Command* command);
void AddTensorCommand(CLI::App& app, Command* command);
void AddTopCommand(CLI::App& app, Command* command);

}  // namespace opserve::cli
