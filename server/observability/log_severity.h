// How grave a line of the log is.
#pragma once

namespace opserve::server {

enum class LogSeverity { kInfo, kWarning, kError };

}  // namespace opserve::server
