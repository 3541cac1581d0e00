// Why the daemon as a whole takes no request.
#pragma once

#include "absl/status/status.h"
#include "ops/catalog/error.h"

namespace opserve::server {

inline absl::Status DrainingError() {
  return catalog::ErrorWithPushback(absl::StatusCode::kUnavailable, "draining",
                                    "the daemon is shutting down", /*pushback_ms=*/1000);
}

}  // namespace opserve::server
