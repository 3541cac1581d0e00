// The daemon's explanation of a failed call, beyond code and message of the absl::Status:
// ErrorDetailOf and ErrorReasonOf (proto/status/error.h), and the time of the next attempt.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "opserve/v1/error.pb.h"
#include "proto/status/error.h"

namespace opserve {

// When to try again, counted from the end of the call. absl::InfiniteDuration(): never, the same
// call cannot succeed. Nothing: the daemon has no opinion.
std::optional<absl::Duration> RetryPushbackOf(const absl::Status& status);

}  // namespace opserve
