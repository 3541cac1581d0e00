// What all requests of a daemon share, whatever their protocol.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "server/observability/operator_statistics.h"
#include "server/observability/request_log.h"
#include "server/observability/request_metrics.h"
#include "server/program/operator_table.h"
#include "server/program/program_limits.h"
#include "server/run/prepared_programs.h"
#include "server/run/resident_tensors.h"
#include "server/schedule/lanes/scheduler.h"
#include "server/schedule/lanes/shadow_checks.h"
#include "server/shared_memory/shared_regions.h"

namespace opserve::server {

class IdempotencyCache;

// The parts of the daemon behind its requests, which outlive them.
struct RequestParts {
  const OperatorTable* operators = nullptr;
  Scheduler* scheduler = nullptr;
  ResidentTensors* residents = nullptr;
  PreparedPrograms* prepared = nullptr;
  const SharedRegions* shared_regions = nullptr;  // null: shared memory is not enabled
  RequestMetrics* metrics = nullptr;
  RequestLog* request_log = nullptr;
  ShadowChecks* shadow_checks = nullptr;
};

// All pointers outlive the requests.
struct RequestContext : RequestParts {
  IdempotencyCache* idempotency = nullptr;
  OperatorStatistics* statistics = nullptr;
  ProgramLimits limits;
  uint64_t max_response_bytes = 0;
  // Once set, new requests are answered UNAVAILABLE.
  std::atomic<bool> is_draining = false;
  // The address of the daemon that receives this one's resident tensors, for clients, once it does.
  std::atomic<const std::string*> moved_to = nullptr;
};

}  // namespace opserve::server
