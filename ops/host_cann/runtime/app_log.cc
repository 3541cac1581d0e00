#include "ops/host_cann/runtime/app_log.h"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "acl/acl.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/parse.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

constexpr std::array<std::string_view, 4> kLevelNames = {"DEBUG", "INFO", "WARNING", "ERROR"};
constexpr size_t kMaxTextBytes = 1024;  // with the terminating zero

bool IsOne(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && std::string_view(value) == "1";
}

// CANN's variables for its log: malformed values count as unset, as in CANN.
struct LogSettings {
  bool prints = IsOne("ASCEND_LOG_PRINT_TO_STDOUT") || IsOne("ASCEND_SLOG_PRINT_TO_STDOUT");
  uint64_t lowest_level = ACL_ERROR;

  LogSettings() {
    constexpr uint64_t kNothing = 4;
    const char* const level = std::getenv("ASCEND_GLOBAL_LOG_LEVEL");
    if (level != nullptr) ParseWholeNumber(level, 0, kNothing, &lowest_level);
  }
};

// Longer lines are cut, and say so.
std::string FormatText(const char* format, va_list arguments) {
  constexpr std::string_view kCut = "...[truncated]";
  std::array<char, kMaxTextBytes> buffer{};
  const int length = std::vsnprintf(buffer.data(), buffer.size(), format, arguments);
  std::string text = buffer.data();
  // vsnprintf returns the length that the text would have.
  if (length >= static_cast<int>(kMaxTextBytes)) {
    text.replace(text.size() - kCut.size(), kCut.size(), kCut);
  }
  return text;
}

}  // namespace

bool IsLogged(aclLogLevel level) {
  static const LogSettings settings;
  return settings.prints && static_cast<uint64_t>(level) >= settings.lowest_level;
}

void WriteLogLine(aclLogLevel level, const char* function, const char* file, uint32_t line,
                  std::string_view text) {
  if (!IsLogged(level)) return;
  // One call per line, so that lines of several threads do not mix.
  const std::string whole =
      Concat("[", kLevelNames[level], "] ", file == nullptr ? "" : file, ":", line, " ",
             function == nullptr ? "" : function, ": ", text, "\n");
  std::fwrite(whole.data(), 1, whole.size(), stdout);
  // At once: a program that crashes has its last lines.
  std::fflush(stdout);
}

}  // namespace opserve::host_cann

using namespace opserve::host_cann;

void aclAppLog(aclLogLevel logLevel, const char* func, const char* file, uint32_t line,
               const char* fmt, ...) {
  // Without a result, mistakes have nowhere to go.
  if (EnterCall(__func__) != ACL_SUCCESS || fmt == nullptr) return;
  if (logLevel < ACL_DEBUG || logLevel > ACL_ERROR) return;
  if (!IsLogged(logLevel)) return;
  va_list arguments;
  va_start(arguments, fmt);
  const std::string text = FormatText(fmt, arguments);
  va_end(arguments);
  WriteLogLine(logLevel, func, file, line, text);
}
