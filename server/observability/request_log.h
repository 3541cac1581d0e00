// The log of requests: a line for each that failed or was slow, and for samples of the others, with
// the facts that explain it.
//
//   {"time":...,"level":"warning","event":"request_slow","trace_id":"4bf9...","span_id":"00f0...",
//    "tenant":"default","operator":"KlDivBackward","program":"KlDivBackward(FLOAT [256, 1024],
//    ...)", "device":0,"lane":2,"code":"OK","seconds":{"read":1.1e-05,...,"total":1.3},...}
//
// Lines never hold tensor contents, tokens or addresses. Their number and bytes are bounded for
// each tenant, so that none can bury another's; the tenant's next line counts those left out.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/observability/line_limiter.h"
#include "server/observability/stage_clock.h"
#include "server/observability/tenant_slot.h"
#include "server/observability/trace_context.h"

namespace opserve::server {

struct RequestLogOptions {
  absl::Duration slow = absl::Seconds(1);  // 0: no request is slow
  uint32_t sample_one_in = 0;              // of the other requests; 0: none
  uint32_t lines_per_second = 1;           // of one tenant, on average; at least 1
};

// Facts that only the request itself can tell.
struct RequestDetails {
  std::string program;  // operators with their inputs' dtypes and shapes
  // Of requests that succeeded, as in the receipt.
  std::optional<uint32_t> lane;
  uint32_t plan_misses = 0;
  uint64_t device_memory_bytes = 0;
  std::string pool_outcome;
};

struct LoggedRequest {
  TraceContext trace;
  std::optional<uint32_t> tenant;  // its id; none: its tenant is unknown
  absl::string_view tenant_name;
  absl::string_view op;  // empty: several, or unknown
  std::optional<int32_t> device;
  const absl::Status& status;
  const StageClock& clock;
  uint64_t request_bytes = 0;
  uint64_t response_bytes = 0;
  const RequestDetails* details = nullptr;  // null: unknown
};

// Thread-safe.
class RequestLog {
 public:
  explicit RequestLog(const RequestLogOptions& options) { SetOptions(options); }

  void SetOptions(const RequestLogOptions& options);

  // Whether a request that ended so has a line, unless there are too many. Cheap.
  bool Wants(const TraceContext& trace, const absl::Status& status, const StageClock& clock) const;

  // Writes the line of a request, if it has one.
  void Record(const LoggedRequest& request, absl::Time now);

 private:
  enum class Kind { kUnwanted, kFault, kRefusal, kSlow, kSample };
  struct Limits {
    // Of the daemon or a device: others must not crowd them out.
    LineLimiter faults{LimitedEvent::kRequest};
    LineLimiter others{LimitedEvent::kRequest};
  };

  Kind KindOf(const TraceContext& trace, const absl::Status& status, const StageClock& clock) const;

  std::atomic<int64_t> slow_ns_ = 0;         // 0: no request is slow
  std::atomic<uint32_t> sample_one_in_ = 0;  // 0: none
  std::atomic<uint32_t> lines_per_second_ = 1;
  std::array<Limits, kTenantSlots> limits_;  // by TenantSlot
};

}  // namespace opserve::server
