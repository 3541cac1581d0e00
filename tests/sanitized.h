// Counts of tests in builds with sanitizers, where each step takes several times as long.
#pragma once

#include "absl/base/config.h"

namespace opserve {

#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

// From one step of an enumeration to the next one that is tried. The build without sanitizers shows
// that each ends well; neighbours use memory and threads alike.
inline constexpr int kStride = kIsSanitized ? 4 : 1;

}  // namespace opserve
