// Refusals that tell the caller when to come back.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ops/catalog/error.h"

namespace opserve::server {

// A status with an ErrorDetail of that reason. `pushback_ms`: when to try again; -1: never.
inline absl::Status ErrorWithPushback(absl::StatusCode code, absl::string_view reason,
                                      absl::string_view message, int64_t pushback_ms) {
  absl::Status status = catalog::ErrorWithReason(code, reason, message);
  v1::ErrorDetail detail = *catalog::GetErrorDetail(status);
  detail.set_retry_pushback_ms(pushback_ms);
  catalog::SetErrorDetail(detail, &status);
  return status;
}

inline absl::Status DrainingError() {
  return ErrorWithPushback(absl::StatusCode::kUnavailable, "draining",
                           "the daemon is shutting down", 1000);
}

}  // namespace opserve::server
