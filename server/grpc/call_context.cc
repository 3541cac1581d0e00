#include "server/grpc/call_context.h"

#include <algorithm>

#include "absl/time/clock.h"

namespace opserve::server {

absl::Time CallContext::RequestDeadline(std::chrono::system_clock::time_point call_deadline,
                                        absl::Duration timeout) const {
  const absl::Time now = absl::Now();
  const bool call_has_one = call_deadline != std::chrono::system_clock::time_point::max();
  absl::Time deadline = now + max_deadline;
  if (call_has_one) deadline = std::min(deadline, absl::FromChrono(call_deadline));
  if (timeout < absl::InfiniteDuration()) {
    deadline = std::min(deadline, now + timeout);
  } else if (!call_has_one) {
    deadline = std::min(deadline, now + default_deadline);
  }
  return deadline;
}

}  // namespace opserve::server
