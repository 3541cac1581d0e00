// Files that a configuration names.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace opserve::server {

// The whole of a file. kNotFound: it cannot be read; the message is the system's reason.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// The whole of a file that other programs may be writing: reads it again until it was at rest
// before and during the reading (size, time of change, identity), for some seconds at most. A file
// that is not regular, such as a pipe, is read once. Blocks in `sleep` until about 0.1 s after the
// last change of the file.
// kNotFound: as ReadFile, or the file does not come to rest.
absl::StatusOr<std::string> ReadFileAtRest(
    const std::string& path, absl::FunctionRef<void(absl::Duration)> sleep = absl::SleepFor);

}  // namespace opserve::server
