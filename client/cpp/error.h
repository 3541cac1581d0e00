// What the daemon says about a failed call, beyond code and message of the absl::Status.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "opserve/v1/error.pb.h"

namespace opserve {

// The daemon's detail of an error that a client call returned. Nothing: the error did not come from
// the daemon (it was not reached, or the deadline passed on the way).
std::optional<v1::ErrorDetail> ErrorDetailOf(const absl::Status& status);

// When to try again, counted from the end of the call. absl::InfiniteDuration(): never, the same
// call cannot succeed. Nothing: the daemon has no opinion.
std::optional<absl::Duration> RetryPushbackOf(const absl::Status& status);

}  // namespace opserve
