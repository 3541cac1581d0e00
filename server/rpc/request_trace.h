// The trace and the details of a request, for the log and receipts.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "server/execution/program.h"
#include "server/execution/program_runner.h"
#include "server/observability/request_log.h"
#include "server/observability/stage_clock.h"
#include "server/observability/trace_context.h"

namespace opserve::server {

// The place of a new request of the call `rpc` in the trace that the call belongs to.
TraceContext TraceOf(const grpc::ServerContextBase& rpc);

// For the log. `result`: how the program ended.
std::shared_ptr<const RequestDetails> DetailsOf(const Program& program,
                                                const absl::StatusOr<ProgramResult>& result);

}  // namespace opserve::server
