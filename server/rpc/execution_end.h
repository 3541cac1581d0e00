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
#include "server/rpc/execute_response.h"

namespace opserve::server {

struct ExecutionEnd {
  absl::Status status;
  std::shared_ptr<const ExecuteAnswer> answer;  // null unless status is OK
  // Of the request, for metrics and the log.
  TraceContext trace;
  Tenant* tenant = nullptr;  // null: nobody's
  StageClock clock;
  int op = RequestMetrics::kUnknown;
  std::optional<int32_t> device;                  // none: it did not get to one itself
  uint64_t request_bytes = 0;                     // as received
  std::shared_ptr<const RequestDetails> details;  // null unless it may be logged
};

// Takes the end of one request. Called once, on a polling thread or a device's; must not block.
using OnExecutionEnd = std::function<void(const ExecutionEnd& end)>;

}  // namespace opserve::server
