// Structured logs: one JSON object per line on standard error.
//
//   {"time":"2024-05-01T12:00:00.000000Z","level":"info","event":"ready","devices":2}
//
// Events and field names are constants; no field holds tensor contents or secrets. A line has at
// most 16 KiB: texts of more than 2 KiB are cut, with "..." and their length behind, and lists of
// more than 64 elements; in a line that would still be longer, texts have 128 bytes.
//
// Lines are written by a thread of the log's own: a reader of standard error that is slow, or has
// stopped, holds up no request. Beyond 4 MiB of lines that wait for it, the oldest are lost, and
// counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "server/observability/log_severity.h"

namespace opserve::server {

using LogFields = std::initializer_list<std::pair<const char*, nlohmann::json>>;

// Whether lines of that severity are written.
bool IsLogged(LogSeverity severity);

// Thread-safe, and safe to call after the program's end has begun.
// `fields`: an object. Gives the line's bytes; 0: lines of that severity are not written.
size_t Log(LogSeverity severity, absl::string_view event, const nlohmann::ordered_json& fields);
void LogInfo(absl::string_view event, LogFields fields = {});
void LogWarning(absl::string_view event, LogFields fields = {});
void LogError(absl::string_view event, LogFields fields = {});

// Waits until all earlier lines have been written, a second at the most. To be called before the
// process ends.
void FlushLog();

// Lines that were lost since the start.
uint64_t DroppedLogLines();

// Memory of the lines that wait to be written.
size_t QueuedLogBytes();

// Sets the lowest level that is written: "debug", "info", "warning", "error" or "off".
// kInvalidArgument: another name.
absl::Status SetLogLevel(absl::string_view level);
std::string LogLevel();

}  // namespace opserve::server
