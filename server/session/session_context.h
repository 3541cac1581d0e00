// What the sessions of a daemon share.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "server/native/native_context.h"
#include "server/session/session_metrics.h"

namespace opserve::server {

// All pointers outlive the sessions.
struct SessionContext : NativeContext {
  // Of clients whose payloads arrive in chunks, while the daemon keeps device memory for them.
  absl::Duration upload_stall_timeout;
  uint64_t upload_min_bytes_per_second = 1;
  SessionMetrics* sessions = nullptr;
  std::string run;  // of the daemon: no other has it
};

}  // namespace opserve::server
