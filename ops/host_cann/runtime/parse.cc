#include "ops/host_cann/runtime/parse.h"

#include <charconv>

namespace opserve::host_cann {

bool ParseWholeNumber(std::string_view text, uint64_t low, uint64_t high, uint64_t* number) {
  uint64_t parsed = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, parsed);
  // The whole text: from_chars alone would take "4x" for 4. It takes no sign and no blank.
  if (error != std::errc() || stop != end || parsed < low || parsed > high) return false;
  *number = parsed;
  return true;
}

bool ParseByteCount(std::string_view text, uint64_t* bytes) {
  uint64_t unit = 1;
  if (!text.empty()) {
    const size_t shift = std::string_view("KMG").find(text.back());
    if (shift != std::string_view::npos) {
      unit = uint64_t{1} << (10 * (shift + 1));
      text.remove_suffix(1);
    }
  }
  uint64_t number = 0;
  // The bound divided by the unit, so that the product below fits.
  if (!ParseWholeNumber(text, 1, (uint64_t{1} << 62) / unit, &number)) return false;
  *bytes = number * unit;
  return true;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(separator);
    // An empty text has one part, which is empty.
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace opserve::host_cann
