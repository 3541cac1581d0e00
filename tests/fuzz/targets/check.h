// What a fuzz target says about every input, besides not crashing.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "absl/strings/string_view.h"

namespace opserve::fuzz {

// Ends the program if a property does not hold, naming it.
inline void Check(bool holds, absl::string_view property) {
  if (holds) return;
  std::fprintf(stderr, "broken property: %.*s\n", static_cast<int>(property.size()),
               property.data());
  std::abort();
}

}  // namespace opserve::fuzz
