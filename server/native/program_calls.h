// The small calls about prepared programs.
#pragma once

#include "absl/status/status.h"
#include "opserve/v1/operator_service.pb.h"
#include "opserve/v1/peer_service.pb.h"
#include "server/identity/tenants.h"
#include "server/request/request_context.h"

namespace opserve::server {

// Handles in one DepositedProgram.
inline constexpr int kMaxDepositedHandles = 256;

// Prepares a program, as far as the tenant may send requests. Thread-safe; does not block, but
// takes the time that binding takes. Errors: Tenant::BeginRequest's, PreparedPrograms::Prepare's,
// PreparedProgram::Make's, and kUnavailable (reason "draining").
absl::Status Prepare(const RequestContext& context, Tenant& tenant,
                     const v1::PrepareRequest& request, v1::PrepareResponse* response);

// Makes a program of another daemon's, under the handles that it has there, as long as the lease of
// one lasts. Thread-safe; like Prepare, it takes the time that binding takes. kInvalidArgument: the
// message is none of the protocol's, or BindProgram's errors; else PreparedPrograms::Adopt's, and
// kPermissionDenied for operators that the owner may not call here.
absl::Status AdoptProgram(const RequestContext& context, const Tenant& owner,
                          const v1::DepositedProgram& program);

// Thread-safe. kInvalidArgument: too many handles at once.
absl::Status ReleasePrograms(const RequestContext& context, const Tenant& tenant,
                             const v1::ReleaseProgramsRequest& request,
                             v1::ReleaseProgramsResponse* response);

}  // namespace opserve::server
