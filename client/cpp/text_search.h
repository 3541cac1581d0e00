// Internal: parts of texts.
#pragma once

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace opserve {

// Whether `text` contains one of `parts`.
inline bool HasAny(absl::string_view text, absl::Span<const absl::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [text](absl::string_view part) { return absl::StrContains(text, part); });
}

}  // namespace opserve
