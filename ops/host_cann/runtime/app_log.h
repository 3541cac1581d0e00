// CANN's log, as far as there is one: lines on the standard output, if the environment asks for it.
#pragma once

#include <cstdint>
#include <string_view>

#include "acl/acl.h"

namespace opserve::host_cann {

// Whether lines of a level are printed.
bool IsLogged(aclLogLevel level);

// Prints one line, if its level is printed. `function` and `file` may be null.
void WriteLogLine(aclLogLevel level, const char* function, const char* file, uint32_t line,
                  std::string_view text);

}  // namespace opserve::host_cann
