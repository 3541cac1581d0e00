#include "client/cli/text/progress_bar.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace opserve::cli {
namespace {

constexpr absl::Duration kDelay = absl::Seconds(1);
constexpr absl::Duration kPeriod = absl::Milliseconds(100);
constexpr size_t kMinBarWidth = 10;
constexpr char kEraseLine[] = "\r\x1b[K";

}  // namespace

ProgressBar::ProgressBar(Terminal& terminal, std::string what, absl::Time start)
    : terminal_(terminal), what_(std::move(what)), start_(start), next_(start + kDelay) {}

ProgressBar::~ProgressBar() {
  if (is_shown_) terminal_.err << kEraseLine << std::flush;
}

void ProgressBar::Update(uint64_t done_bytes, uint64_t total_bytes, absl::Time now) {
  if (!IsDue(now)) return;
  // Nothing to move is all moved.
  const double share = total_bytes == 0 ? 1 : static_cast<double>(done_bytes) / total_bytes;
  const double bytes_per_second = done_bytes / absl::ToDoubleSeconds(now - start_);
  Update(share,
         absl::StrCat(FormatBytes(done_bytes), " of ", FormatBytes(total_bytes), "  ",
                      FormatBytes(bytes_per_second), "/s"),
         now);
}

void ProgressBar::Update(double share, absl::string_view facts, absl::Time now) {
  if (!IsDue(now)) return;
  next_ = now + kPeriod;
  is_shown_ = true;
  terminal_.err << kEraseLine << Line(share, facts) << std::flush;
}

std::string ProgressBar::Line(double share, absl::string_view facts) const {
  std::string line = absl::StrFormat("%s %3.0f %%  %s", what_, 100 * share, facts);
  const size_t width = terminal_.width - 1;  // a line as wide as the terminal might be broken
  const size_t used = line.size() + std::strlen("  []");
  // Without room for a useful bar the facts stand alone.
  if (used + kMinBarWidth <= width) {
    const size_t bar = width - used;
    const auto filled = static_cast<size_t>(share * bar);
    absl::StrAppend(&line, "  [", std::string(filled, '#'), std::string(bar - filled, ' '), "]");
  }
  return line.substr(0, width);
}

}  // namespace opserve::cli
