#include "server/device/acl/runtime_text.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace opserve::server {
namespace {

constexpr size_t kAddressDigits = 6;  // shorter numbers are flags and codes
constexpr std::array<absl::string_view, 2> kIdNames = {"PID", "TID"};

size_t CountWhile(absl::string_view text, bool (*holds)(unsigned char)) {
  return std::find_if_not(text.begin(), text.end(), holds) - text.begin();
}

bool IsWordByte(unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; }
bool IsPathByte(unsigned char c) {
  return IsWordByte(c) || c == '/' || c == '.' || c == '-' || c == '+';
}
bool IsBetweenNameAndNumber(unsigned char c) { return c == ' ' || c == ':' || c == '='; }

// A part at the front of a text, and its replacement.
struct Replacement {
  size_t taken = 0;  // 0: nothing is to be replaced here
  std::string written;
};

Replacement ReplaceAddress(absl::string_view rest) {
  if (!absl::StartsWithIgnoreCase(rest, "0x")) return {};
  const size_t digits = CountWhile(rest.substr(2), absl::ascii_isxdigit);
  if (digits < kAddressDigits) return {};
  return {2 + digits, "0x..."};
}

Replacement ReplacePath(absl::string_view rest) {
  // A slash alone is punctuation.
  if (rest.size() < 2 || rest[0] != '/' || !IsPathByte(static_cast<unsigned char>(rest[1]))) {
    return {};
  }
  const size_t size = CountWhile(rest, IsPathByte);
  const absl::string_view path = rest.substr(0, size);
  const absl::string_view name = path.substr(path.rfind('/') + 1);
  // A directory has no name to show.
  return {size, name.empty() ? "..." : std::string(name)};
}

Replacement ReplaceId(absl::string_view rest) {
  for (const absl::string_view name : kIdNames) {
    if (!absl::StartsWithIgnoreCase(rest, name)) continue;
    const size_t between = CountWhile(rest.substr(name.size()), IsBetweenNameAndNumber);
    const size_t start = name.size() + between;
    const size_t digits = CountWhile(rest.substr(start), absl::ascii_isdigit);
    if (between > 0 && digits > 0) {
      return {start + digits, absl::StrCat(rest.substr(0, start), "...")};
    }
  }
  return {};
}

}  // namespace

std::string WithoutInternals(absl::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    // Inside a word nothing is replaced: "N/A" is no path.
    const bool is_start = at == 0 || !IsPathByte(static_cast<unsigned char>(text[at - 1]));
    Replacement replacement;
    for (const auto replace : {ReplaceAddress, ReplacePath, ReplaceId}) {
      if (is_start && replacement.taken == 0) replacement = replace(text.substr(at));
    }
    if (replacement.taken == 0) {
      result.push_back(text[at]);
      ++at;
    } else {
      result += replacement.written;
      at += replacement.taken;
    }
  }
  return result;
}

}  // namespace opserve::server
