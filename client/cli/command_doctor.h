// "opserve doctor".
#pragma once

#include "CLI/CLI.hpp"
#include "client/cli/session.h"

namespace opserve::cli {

void AddDoctorCommand(CLI::App& app, Command* command);

}  // namespace opserve::cli
