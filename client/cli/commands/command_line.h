// The program `opserve`, apart from main().
#pragma once

#include <string>
#include <vector>

#include "client/cli/text/failure.h"
#include "client/cli/text/output.h"

namespace opserve::cli {

// Runs the program with `arguments` (without its name); writes to `terminal` only.
ExitCode RunCommandLine(const std::vector<std::string>& arguments, Terminal& terminal);

}  // namespace opserve::cli
