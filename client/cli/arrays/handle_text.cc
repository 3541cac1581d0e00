#include "client/cli/arrays/handle_text.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

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

}  // namespace opserve::cli
