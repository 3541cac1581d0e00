#include "server/observability/log.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/status/error.h"
#include "server/observability/log_queue.h"

namespace opserve::server {
namespace {

constexpr size_t kMaxQueueBytes = 4 << 20;
constexpr size_t kMaxLineBytes = 16 << 10;
// Of one text in a line; of each, if the line would else be too long.
constexpr size_t kMaxTextBytes = 2 << 10;
constexpr size_t kMaxTextBytesOfMany = 128;
constexpr size_t kMaxElements = 64;  // of a list
constexpr absl::Duration kFlushTimeout = absl::Seconds(1);

constexpr const char* kLevelNames[] = {"debug", "info", "warning", "error", "off"};

// Index of a severity in kLevelNames.
int LevelOf(LogSeverity severity) { return static_cast<int>(severity) + 1; }

// Before the configuration is read: info.
std::atomic<int> lowest_level = LevelOf(LogSeverity::kInfo);

LogQueue& Queue() {
  // Never destroyed: threads may log while the process ends.
  static auto* const queue = new LogQueue(kMaxQueueBytes);
  return *queue;
}

// The same with its texts and lists cut to a length, and marked where they were.
nlohmann::ordered_json Bounded(const nlohmann::ordered_json& value, size_t max_text_bytes) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text.size() <= max_text_bytes) return value;
    return absl::StrCat(Shortened(text, max_text_bytes), " (", text.size(), " bytes)");
  }
  if (!value.is_structured()) return value;
  const bool is_list = value.is_array();
  auto bounded = is_list ? nlohmann::ordered_json::array() : nlohmann::ordered_json::object();
  for (const auto& [key, element] : value.items()) {
    // A list of client's names must not fill a line.
    if (bounded.size() == kMaxElements) {
      const std::string mark = absl::StrCat("... and ", value.size() - kMaxElements, " more");
      is_list ? bounded.push_back(mark) : (void)(bounded["..."] = mark);
      break;
    }
    (is_list ? bounded.emplace_back() : bounded[key]) = Bounded(element, max_text_bytes);
  }
  return bounded;
}

// At most kMaxLineBytes of JSON. Texts may come from anywhere: bytes that are not UTF-8 are
// replaced, since they would make dump throw.
std::string ToLine(LogSeverity severity, absl::string_view event,
                   const nlohmann::ordered_json& fields) {
  const nlohmann::ordered_json head = {
      {"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::Now(), absl::UTCTimeZone())},
      {"level", kLevelNames[LevelOf(severity)]},
      {"event", std::string(event)}};
  const auto dump = [](const nlohmann::ordered_json& line) {
    return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  };
  // First with long texts; if the line is too long, with short ones.
  for (const size_t max_text_bytes : {kMaxTextBytes, kMaxTextBytesOfMany}) {
    nlohmann::ordered_json line = head;
    line.update(Bounded(fields, max_text_bytes));
    std::string text = dump(line);
    if (text.size() <= kMaxLineBytes) return text;
  }
  // Even short texts are too many: the event alone is logged.
  nlohmann::ordered_json line = head;
  line["fields_left_out"] = fields.size();
  return dump(line);
}

void Log(LogSeverity severity, absl::string_view event, LogFields fields) {
  if (!IsLogged(severity)) return;
  nlohmann::ordered_json line = nlohmann::ordered_json::object();
  for (const auto& [key, value] : fields) line[key] = value;
  Log(severity, event, line);
}

}  // namespace

bool IsLogged(LogSeverity severity) {
  return LevelOf(severity) >= lowest_level.load(std::memory_order_relaxed);
}

size_t Log(LogSeverity severity, absl::string_view event, const nlohmann::ordered_json& fields) {
  if (!IsLogged(severity)) return 0;
  std::string line = ToLine(severity, event, fields);
  const size_t bytes = line.size() + 1;  // and its end
  Queue().Push(std::move(line));
  return bytes;
}

void LogInfo(absl::string_view event, LogFields fields) { Log(LogSeverity::kInfo, event, fields); }

void LogWarning(absl::string_view event, LogFields fields) {
  Log(LogSeverity::kWarning, event, fields);
}

void LogError(absl::string_view event, LogFields fields) {
  Log(LogSeverity::kError, event, fields);
}

void FlushLog() { Queue().Flush(kFlushTimeout); }

uint64_t DroppedLogLines() { return Queue().dropped(); }

size_t QueuedLogBytes() { return Queue().bytes(); }

absl::Status SetLogLevel(absl::string_view level) {
  const auto* const found = std::find(std::begin(kLevelNames), std::end(kLevelNames), level);
  if (found == std::end(kLevelNames)) {
    return absl::InvalidArgumentError(absl::StrCat("unknown log level \"",
                                                   Shortened(level, kMaxTextBytesOfMany),
                                                   "\"; use debug, info, warning, error or off"));
  }
  lowest_level.store(static_cast<int>(found - kLevelNames), std::memory_order_relaxed);
  return absl::OkStatus();
}

std::string LogLevel() { return kLevelNames[lowest_level.load(std::memory_order_relaxed)]; }

}  // namespace opserve::server
