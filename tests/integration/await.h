// Waiting for what other threads and processes bring about.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace opserve::server {

// Looks until `condition` holds, for a minute; whether it does.
inline bool Await(absl::FunctionRef<bool()> condition) {
  const absl::Time end = absl::Now() + absl::Minutes(1);
  while (!condition()) {
    if (absl::Now() > end) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

}  // namespace opserve::server
