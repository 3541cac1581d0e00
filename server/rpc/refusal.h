// Why the daemon as a whole takes no request.
#pragma once

#include "absl/status/status.h"
#include "proto/status/error.h"

namespace opserve::server {

inline absl::Status DrainingError() {
  return MakeError(Reason::kDraining, "the daemon is shutting down", /*pushback_ms=*/1000);
}

}  // namespace opserve::server
