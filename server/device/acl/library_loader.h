// Loads shared libraries with dependencies that the system's loader may not find by itself.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace opserve::server {

// Loads the library at `path` for good, and with it those it needs. Libraries unknown to the
// system's loader (without CANN's set_env.sh it knows none of CANN's directories) are taken from
// `directories`, the first first. All are loaded globally, so that libraries that come later find
// them by their names.
//
// kNotFound: a library that it needs is in none of them; the message names it and the remedy.
// kInternal: the loader refuses for another reason, which the message has.
absl::StatusOr<void*> LoadLibrary(const std::string& path,
                                  absl::Span<const std::string> directories);

// The same of a library that is open as `file`, but for itself: its symbols are found by its handle
// alone, so they take no other library's place. The libraries that it needs are loaded globally.
// On success the descriptor is the loader's and stays open, which keeps its number to this file.
// `path` is its name in errors.
absl::StatusOr<void*> LoadPrivateLibrary(int file, const std::string& path,
                                         absl::Span<const std::string> directories);

}  // namespace opserve::server
