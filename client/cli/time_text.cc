#include "client/cli/time_text.h"

#include "absl/strings/str_cat.h"

namespace opserve::cli {

std::string ReadTime(const std::string& text, absl::Duration* time) {
  if (absl::ParseDuration(text, time) && *time > absl::ZeroDuration()) return "";
  return absl::StrCat("\"", text, "\" is not a time such as 30s, 500ms or 2m");
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

}  // namespace opserve::cli
