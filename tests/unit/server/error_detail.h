// What the daemon's own statuses say beyond their text.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "proto/status/error.h"

namespace opserve::server {

// Empty without one.
inline v1::ErrorDetail DetailOf(const absl::Status& status) {
  return ErrorDetailOf(status).value_or(v1::ErrorDetail());
}
inline std::string ReasonOf(const absl::Status& status) { return DetailOf(status).reason(); }

}  // namespace opserve::server
