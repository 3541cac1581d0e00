// The text of opserved --help.
#pragma once

#include <string>

namespace opserve::server {

// Introduction, examples, and every flag in its group with type, default, bounds and help, in lines
// of at most 80 characters where words allow it. The manual page is made from it.
std::string FlagsHelp();

}  // namespace opserve::server
