#include "server/observability/log.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace opserve::server {
namespace {

spdlog::logger& Logger() {
  // Never destroyed: threads may log while the process ends.
  static auto* const logger = [] {
    auto* const created =
        new spdlog::logger("opserved", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    created->set_pattern("%v");
    created->flush_on(spdlog::level::trace);
    return created;
  }();
  return *logger;
}

struct Level {
  spdlog::level::level_enum level;
  const char* name;
};

Level LevelOf(LogSeverity severity) {
  switch (severity) {
    case LogSeverity::kInfo:
      return {spdlog::level::info, "info"};
    case LogSeverity::kWarning:
      return {spdlog::level::warn, "warning"};
    case LogSeverity::kError:
      break;
  }
  return {spdlog::level::err, "error"};
}

void Log(LogSeverity severity, absl::string_view event, LogFields fields) {
  if (!IsLogged(severity)) return;
  nlohmann::ordered_json line = nlohmann::ordered_json::object();
  for (const auto& [key, value] : fields) line[key] = value;
  Log(severity, event, line);
}

}  // namespace

bool IsLogged(LogSeverity severity) { return Logger().should_log(LevelOf(severity).level); }

void Log(LogSeverity severity, absl::string_view event, const nlohmann::ordered_json& fields) {
  const Level level = LevelOf(severity);
  if (!Logger().should_log(level.level)) return;
  nlohmann::ordered_json line = {
      {"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::Now(), absl::UTCTimeZone())},
      {"level", level.name},
      {"event", std::string(event)}};
  line.update(fields);
  // Texts may come from the ACL library: what is not UTF-8 is replaced, not thrown at.
  Logger().log(level.level,
               line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void LogInfo(absl::string_view event, LogFields fields) { Log(LogSeverity::kInfo, event, fields); }

void LogWarning(absl::string_view event, LogFields fields) {
  Log(LogSeverity::kWarning, event, fields);
}

void LogError(absl::string_view event, LogFields fields) {
  Log(LogSeverity::kError, event, fields);
}

absl::Status SetLogLevel(absl::string_view level) {
  const auto parsed = spdlog::level::from_str(std::string(level));
  if (parsed == spdlog::level::off && level != "off") {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown log level \"", level, "\"; use debug, info, warning, error or off"));
  }
  Logger().set_level(parsed);
  return absl::OkStatus();
}

std::string LogLevel() {
  const auto name = spdlog::level::to_string_view(Logger().level());
  return {name.data(), name.size()};
}

}  // namespace opserve::server
