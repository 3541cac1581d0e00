#include "server/observability/log.h"

#include <atomic>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "spdlog/async.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace opserve::server {
namespace {

constexpr size_t kLongestQueue = 8192;
constexpr absl::Duration kFlushTimeout = absl::Seconds(1);
constexpr absl::Duration kFlushPeriod = absl::Milliseconds(1);

// Standard error, counting what it was given.
class CountingSink final : public spdlog::sinks::stderr_sink_st {
 public:
  void log(const spdlog::details::log_msg& message) override {
    spdlog::sinks::stderr_sink_st::log(message);
    written_.fetch_add(1, std::memory_order_release);
  }
  uint64_t written() const { return written_.load(std::memory_order_acquire); }

 private:
  std::atomic<uint64_t> written_ = 0;
};

struct AsyncLog {
  AsyncLog() {
    logger->set_pattern("%v");
    sink->set_level(spdlog::level::trace);
  }

  // One thread, so that lines keep their order.
  const std::shared_ptr<spdlog::details::thread_pool> thread =
      std::make_shared<spdlog::details::thread_pool>(kLongestQueue, 1);
  const std::shared_ptr<CountingSink> sink = std::make_shared<CountingSink>();
  const std::shared_ptr<spdlog::async_logger> logger = std::make_shared<spdlog::async_logger>(
      "opserved", sink, thread, spdlog::async_overflow_policy::overrun_oldest);
  std::atomic<uint64_t> logged = 0;
};

AsyncLog& TheLog() {
  // Never destroyed: threads may log while the process ends.
  static auto* const log = new AsyncLog();
  return *log;
}

spdlog::logger& Logger() { return *TheLog().logger; }

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
  TheLog().logged.fetch_add(1, std::memory_order_relaxed);
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

void FlushLog() {
  const AsyncLog& log = TheLog();
  const uint64_t logged = log.logged.load();
  const absl::Time deadline = absl::Now() + kFlushTimeout;
  while (log.sink->written() + DroppedLogLines() < logged && absl::Now() < deadline) {
    absl::SleepFor(kFlushPeriod);
  }
}

uint64_t DroppedLogLines() { return TheLog().thread->overrun_counter(); }

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
