// The daemon's program, where this one needs it on its own machine.
#pragma once

#include <string>

namespace opserve::cli {

// The opserved beside this program; else its bare name, which $PATH finds or not.
std::string DaemonProgram();

}  // namespace opserve::cli
