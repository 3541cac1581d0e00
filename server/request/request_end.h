// How a request to run a program ended.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "server/identity/tenants.h"
#include "server/observability/request_log.h"
#include "server/observability/request_metrics.h"
#include "server/observability/stage_clock.h"
#include "server/observability/trace_context.h"
#include "server/request/request_answer.h"
#include "server/request/request_context.h"

namespace opserve::server {

struct RequestEnd {
  absl::Status status;
  std::shared_ptr<const RequestAnswer> answer;  // null unless status is OK
  // Of the request, for metrics and the log.
  TraceContext trace;
  Tenant* tenant = nullptr;  // null: nobody's
  StageClock clock;
  int op = RequestMetrics::kUnknown;
  std::optional<int32_t> device;                  // none: it did not get to one itself
  uint64_t request_bytes = 0;                     // as received
  std::shared_ptr<const RequestDetails> details;  // null unless it may be logged
};

// Takes the end of one request: its protocol sends the answer and has it recorded. Called once, on
// a polling thread or a device's; must not block.
using OnRequestEnd = std::function<void(const RequestEnd& end)>;

// Counts a request that has ended. `response_bytes`: of the message that answers it; 0 on failure.
void Record(const RequestContext& context, const RequestEnd& end, uint64_t response_bytes);

}  // namespace opserve::server
