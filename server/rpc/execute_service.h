// Shared state of the executing calls of one listener.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "opserve/v1/operator_service.grpc.pb.h"
#include "server/access/authenticator.h"
#include "server/execution/bind_program.h"
#include "server/execution/bound_programs.h"
#include "server/execution/operator_table.h"
#include "server/execution/prepared_programs.h"
#include "server/execution/resident_tensors.h"
#include "server/observability/operator_statistics.h"
#include "server/observability/request_log.h"
#include "server/observability/request_metrics.h"
#include "server/rpc/call_counter.h"
#include "server/rpc/end_alarms.h"
#include "server/rpc/given_message.h"
#include "server/rpc/session_metrics.h"
#include "server/scheduling/scheduler.h"
#include "server/scheduling/shadow_checks.h"
#include "server/scheduling/visitor.h"
#include "server/shared_memory/shared_regions.h"

namespace opserve::server {

class IdempotencyCache;

// All methods take and give raw slices: Execute, ExecuteStream and Session so that tensor bytes
// never become a protobuf string, the small calls so that a malformed message has our answer
// (unary_call.h). Reflection still sees the ordinary service.
using AsyncOperatorService = GivingService<v1::OperatorService::WithRawMethod_ListOperators<
    v1::OperatorService::WithRawMethod_Execute<v1::OperatorService::WithRawMethod_ExecuteStream<
        v1::OperatorService::WithRawMethod_Session<v1::OperatorService::WithRawMethod_Prepare<
            v1::OperatorService::WithRawMethod_ReleasePrograms<
                v1::OperatorService::WithRawMethod_GetServerStatus<
                    v1::OperatorService::Service>>>>>>>>;

// All pointers outlive the calls.
struct ExecuteContext {
  AsyncOperatorService* service = nullptr;
  ServerCalls* calls = nullptr;
  const OperatorTable* operators = nullptr;
  Scheduler* scheduler = nullptr;
  ResidentTensors* residents = nullptr;
  PreparedPrograms* prepared = nullptr;
  const SharedRegions* shared_regions = nullptr;  // null: shared memory is not enabled
  IdempotencyCache* idempotency = nullptr;
  RequestMetrics* metrics = nullptr;
  OperatorStatistics* statistics = nullptr;
  RequestLog* request_log = nullptr;
  ShadowChecks* shadow_checks = nullptr;  // outlives the context
  const Authenticator* authenticator = nullptr;
  ProgramLimits limits;
  uint64_t max_response_bytes = 0;
  absl::Duration default_deadline;
  absl::Duration max_deadline;
  // Of clients whose payloads arrive in chunks, while the daemon keeps device memory for them.
  absl::Duration upload_stall_timeout;
  uint64_t upload_min_bytes_per_second = 1;
  // Requests of one stream that may be unanswered; at least 1.
  uint32_t stream_window = 64;
  // After which a session says going-away: a connection may be as old as it gets when the session
  // begins, and still gives calls `max_connection_age_grace`.
  absl::Duration longest_session = absl::Minutes(4);
  SessionMetrics* sessions = nullptr;
  std::string run;  // of the daemon: no other has it
  // Once set, sessions are to go elsewhere, while requests are still served.
  std::atomic<bool> is_leaving = false;
  // Once set, new requests are answered UNAVAILABLE.
  std::atomic<bool> is_draining = false;
  // The address of the daemon that receives this one's resident tensors, for clients, once it does.
  std::atomic<const std::string*> moved_to = nullptr;
  // Single calls between their arrival and the confirmation that their answer was sent, and streams
  // with requests there. Calls that come while the daemon drains are refused and do not count, or
  // clients that keep calling would make every drain last until its timeout.
  CallCounter in_flight;
  // Of the streams that are open.
  EndAlarms end_alarms;

  // By visitor (server/scheduling/visitor.h).
  std::vector<std::unique_ptr<BoundPrograms>> bound_programs;
  // Those of the calling thread, if it is a polling one.
  BoundPrograms* ProgramsOfThread() const {
    const std::optional<uint32_t> visitor = Visitor::Current();
    return visitor && *visitor < bound_programs.size() ? bound_programs[*visitor].get() : nullptr;
  }

  // Counts a call that has arrived as in flight, unless the daemon drains; whether it did.
  bool CountUnlessDraining() { return in_flight.AddUnless(is_draining); }
};

}  // namespace opserve::server
