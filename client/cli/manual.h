// The manual page of the program.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace opserve::cli {

// A page for man(1), in roff: the --help texts of the program and of all its commands.
std::string FormatManual(const CLI::App& app);

}  // namespace opserve::cli
