// Tables that fit a terminal: with bars if there is room, and with fewer columns if there is
// little.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace opserve::cli {

inline constexpr size_t kUnlimited = SIZE_MAX;

enum class Style { kPlain, kTitle, kGood, kWarning, kBad, kAccent };

// `text` in a style's colour, as terminals understand it.
std::string Styled(absl::string_view text, Style style);

// At most `width` columns of `text`, the last being "~" if some are left out; whatever could move
// the cursor becomes "?".
std::string Clip(absl::string_view text, size_t width);

struct BarColumn {
  std::string title = {};
  bool is_number = false;  // to the right
  bool has_bar = false;
};

struct BarCell {
  std::string text = {};
  Style style = Style::kPlain;
  double fill = 0;  // of the bar, 0 to 1
};

// The title and the rows, one string for each, without line breaks; no string takes more than
// `width` columns of a terminal. Parts that do not fit are left out: first the bars, then columns
// from the right. An unlimited width is for programs and files: no bars. Each row has a cell for
// each column.
std::vector<std::string> LayOut(std::vector<BarColumn> columns,
                                const std::vector<std::vector<BarCell>>& rows, size_t width,
                                bool has_colors);

}  // namespace opserve::cli
