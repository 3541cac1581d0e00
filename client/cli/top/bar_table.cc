#include "client/cli/top/bar_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace opserve::cli {
namespace {

constexpr size_t kBrackets = 2;
constexpr size_t kMinBarBesideText = 3;
constexpr size_t kMaxBar = 24;  // between the brackets; longer ones tell no more
constexpr size_t kMinTextColumns = 12;

absl::string_view ColorOf(Style style) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kTitle:
      return "\x1b[1m";
    case Style::kGood:
      return "\x1b[32m";
    case Style::kWarning:
      return "\x1b[33m";
    case Style::kBad:
      return "\x1b[1;31m";
    case Style::kAccent:
      return "\x1b[36m";
  }
  return "";
}

// Measures all cells first: the widths of columns, then the columns that fit, then bars in the room
// that is left.
class Layout {
 public:
  // No column takes more than a third of the line, but 12 columns at least.
  Layout(std::vector<BarColumn> columns, const std::vector<std::vector<BarCell>>& rows,
         size_t width, bool has_colors)
      : columns_(std::move(columns)),
        rows_(rows),
        is_limited_(width != kUnlimited),
        has_colors_(has_colors),
        max_text_(is_limited_ ? std::min(width, std::max(kMinTextColumns, width / 3))
                              : kUnlimited) {
    MeasureText();
    if (!is_limited_) return;
    // From the right, where the least important columns are. One column always stays, clipped.
    while (columns_.size() > 1 && Total() > width) {
      columns_.pop_back();
      widths_.pop_back();
    }
    MakeRoomForBars(width - Total());
  }

  std::string Title() const {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) AppendText(columns_[i].title, i, &line);
    absl::StripTrailingAsciiWhitespace(&line);
    return has_colors_ ? Styled(line, Style::kTitle) : line;
  }

  std::string Row(const std::vector<BarCell>& cells) const {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (has_bars_ && columns_[i].has_bar) {
        absl::StrAppend(&line, Gap(i));
        AppendBar(cells[i], widths_[i] - kBrackets, &line);
      } else {
        AppendText(cells[i].text, i, &line, cells[i].style);
      }
    }
    absl::StripTrailingAsciiWhitespace(&line);
    return line;
  }

 private:
  // By bytes: names and numbers are ASCII, and Clip replaces all else.
  void MeasureText() {
    for (size_t i = 0; i < columns_.size(); ++i) {
      size_t longest = columns_[i].title.size();
      for (const auto& row : rows_) longest = std::max(longest, row[i].text.size());
      widths_.push_back(std::min(longest, max_text_));
    }
  }

  size_t Total() const {
    size_t total = 0;
    for (size_t i = 0; i < widths_.size(); ++i) total += widths_[i] + Gap(i).size();
    return total;
  }

  // Divides the rest of the line. All bars or none: a reader compares them.
  void MakeRoomForBars(size_t room) {
    const size_t bars = std::count_if(columns_.begin(), columns_.end(),
                                      [](const BarColumn& column) { return column.has_bar; });
    if (bars == 0 || room / bars < kBrackets + kMinBarBesideText) return;
    has_bars_ = true;
    for (size_t i = 0; i < columns_.size(); ++i) {
      // A bar is at least as wide as the cell's text and three more.
      if (!columns_[i].has_bar) continue;
      const size_t text = widths_[i];
      widths_[i] += std::min(
          room / bars, kBrackets + std::max(kMinBarBesideText, kMaxBar - std::min(kMaxBar, text)));
    }
  }

  absl::string_view Gap(size_t column) const {
    if (column == 0) return "";
    return is_limited_ ? " " : "  ";
  }

  void AppendText(absl::string_view text, size_t column, std::string* line,
                  Style style = Style::kPlain) const {
    const std::string clipped = Clip(text, widths_[column]);
    const std::string padding(widths_[column] - clipped.size(), ' ');
    const bool is_right = columns_[column].is_number;
    absl::StrAppend(line, Gap(column), is_right ? padding : "",
                    has_colors_ ? Styled(clipped, style) : clipped, is_right ? "" : padding);
  }

  // "[####     2/4]": the text stands in the bar, over its end if need be.
  void AppendBar(const BarCell& cell, size_t width, std::string* line) const {
    const auto filled = static_cast<size_t>(std::clamp(cell.fill, 0.0, 1.0) * width + 0.5);
    std::string bar = absl::StrCat(std::string(filled, '#'), std::string(width - filled, ' '));
    const std::string text = Clip(absl::StrCat(" ", cell.text), width);
    bar.replace(width - text.size(), text.size(), text);
    const absl::string_view all = bar;
    absl::StrAppend(line, "[", has_colors_ ? Styled(all.substr(0, filled), cell.style) : bar,
                    has_colors_ ? all.substr(filled) : "", "]");
  }

  std::vector<BarColumn> columns_;
  const std::vector<std::vector<BarCell>>& rows_;
  const bool is_limited_;
  const bool has_colors_;
  const size_t max_text_;
  std::vector<size_t> widths_;  // of the columns
  bool has_bars_ = false;
};

}  // namespace

std::string Styled(absl::string_view text, Style style) {
  const absl::string_view color = ColorOf(style);
  if (color.empty() || text.empty()) return std::string(text.data(), text.size());
  return absl::StrCat(color, text, "\x1b[0m");
}

std::string Clip(absl::string_view text, size_t width) {
  std::string clipped(text.substr(0, width).data(), std::min(text.size(), width));
  std::replace_if(
      clipped.begin(), clipped.end(), [](char c) { return !absl::ascii_isprint(c); }, '?');
  if (text.size() > width && width > 0) clipped.back() = '~';
  return clipped;
}

std::vector<std::string> LayOut(std::vector<BarColumn> columns,
                                const std::vector<std::vector<BarCell>>& rows, size_t width,
                                bool has_colors) {
  const Layout layout(std::move(columns), rows, width, has_colors);
  std::vector<std::string> lines = {layout.Title()};
  for (const auto& row : rows) lines.push_back(layout.Row(row));
  return lines;
}

}  // namespace opserve::cli
