// Requests of one tenant or one operator, added up since the daemon's start.
#pragma once

#include <cstdint>

namespace opserve::server {

struct RequestTotals {
  uint64_t requests = 0;        // ended
  uint64_t failed = 0;          // of these, not with success
  double success_seconds = 0;   // from receipt to answer, of those with success
  uint64_t request_bytes = 0;   // as received
  uint64_t response_bytes = 0;  // as sent
};

}  // namespace opserve::server
