#include "client/cli/handle_text.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/status/status_macros.h"

namespace opserve::cli {

std::string FormatHandle(absl::string_view handle) { return absl::BytesToHexString(handle); }

absl::StatusOr<std::string> ParseHandle(absl::string_view text) {
  if (text.empty() || text.size() % 2 != 0 ||
      !std::all_of(text.begin(), text.end(), absl::ascii_isxdigit)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not a handle, such as \"opserve tensor upload\" gives"));
  }
  return absl::HexStringToBytes(text);
}

absl::StatusOr<std::vector<std::string>> ParseHandles(const std::vector<std::string>& texts) {
  std::vector<std::string> handles;
  for (const std::string& text : texts) {
    OPSERVE_ASSIGN_OR_RETURN(std::string handle, ParseHandle(text));
    handles.push_back(std::move(handle));
  }
  return handles;
}

}  // namespace opserve::cli
