// The daemon's program, where this one needs it on its own machine.
#pragma once

#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include "client/cli/text/failure.h"

namespace opserve::cli {

// The opserved beside this program; else its bare name, which $PATH finds or not.
std::string DaemonProgram();

// Runs it with `arguments`, copies its standard output to `out` as it comes, and waits for its
// end. A failure: it cannot be started. Else its status, as waitpid gives it.
std::variant<int, Failure> RunDaemonProgram(const std::vector<std::string>& arguments,
                                            std::ostream& out);

}  // namespace opserve::cli
