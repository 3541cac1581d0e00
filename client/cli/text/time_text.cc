#include "client/cli/text/time_text.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace opserve::cli {

std::string ReadTime(const std::string& text, absl::Duration* time) {
  if (absl::ParseDuration(text, time) && *time > absl::ZeroDuration()) return "";
  return absl::StrCat("\"", text, "\" is not a time such as 30s, 500ms or 2m");
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

CLI::Option* AddLeaseFlag(CLI::App* command, absl::Duration* lease) {
  return command
      ->add_option("--lease", "How long the tensor is kept: 90s, 12h; default: the daemon's (10m)")
      ->type_name("TIME")
      ->check([lease](const std::string& text) { return ReadTime(text, lease); });
}

}  // namespace opserve::cli
