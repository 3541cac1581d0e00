// The part of a request that its gRPC call says.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "server/identity/tenants.h"
#include "server/observability/stage_clock.h"
#include "server/observability/trace_context.h"
#include "server/request/request_end.h"

namespace opserve::server {

// The place of a new request of the call `rpc` in the trace that the call belongs to.
TraceContext TraceOf(const grpc::ServerContextBase& rpc);

// The end of a request of the call `rpc` whose message was refused before its program was read.
// `tenant`: null if it was refused because its tenant is not known.
RequestEnd RefuseMessage(const absl::Status& status, Tenant* tenant, const StageClock& clock,
                         const grpc::ServerContextBase& rpc, uint64_t message_bytes);

}  // namespace opserve::server
