// What all calls and streams that run programs share, whatever their protocol.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "absl/time/time.h"
#include "server/grpc/authenticator.h"
#include "server/grpc/call_counter.h"
#include "server/grpc/end_alarms.h"
#include "server/request/request_context.h"

namespace opserve::server {

// All pointers outlive the calls.
struct CallContext : RequestContext {
  ServerCalls* calls = nullptr;
  const Authenticator* authenticator = nullptr;
  absl::Duration default_deadline;
  absl::Duration max_deadline;
  // Requests of one stream that may be unanswered; at least 1.
  uint32_t stream_window = 64;
  // After which a session says going-away: a connection may be as old as it gets when the session
  // begins, and still gives calls `max_connection_age_grace`.
  absl::Duration longest_session = absl::Minutes(4);
  // Once set, sessions are to go elsewhere, while requests are still served.
  std::atomic<bool> is_leaving = false;
  // Single calls between their arrival and the confirmation that their answer was sent, and streams
  // with requests there. Calls that come while the daemon drains are refused and do not count, or
  // clients that keep calling would make every drain last until its timeout.
  CallCounter in_flight;
  // Of the streams that are open.
  EndAlarms end_alarms;

  // Counts a call that has arrived as in flight, unless the daemon drains; whether it did.
  bool CountUnlessDraining() { return in_flight.AddUnless(is_draining); }

  // Until when a request may take: the call's own deadline (time_point::max(): none), and `timeout`
  // from now (infinite: none); with neither, the default. Never beyond the longest allowed.
  absl::Time RequestDeadline(std::chrono::system_clock::time_point call_deadline,
                             absl::Duration timeout) const;
};

}  // namespace opserve::server
