// The small calls about prepared programs.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "opserve/v1/operator_service.pb.h"
#include "server/execution/bind_program.h"
#include "server/identity/tenants.h"
#include "server/rpc/execute_service.h"

namespace opserve::server {

// Prepares a program, as far as the tenant may send requests. Thread-safe; does not block, but
// takes the time that binding takes. Errors: Tenant::BeginRequest's, PreparedPrograms::Prepare's,
// PreparedProgram::Make's, and kUnavailable (reason "draining").
absl::Status Prepare(const ExecuteContext& context, Tenant& tenant,
                     const v1::PrepareRequest& request, v1::PrepareResponse* response);

// Thread-safe. kInvalidArgument: too many handles at once.
absl::Status ReleasePrograms(const ExecuteContext& context, const Tenant& tenant,
                             const v1::ReleaseProgramsRequest& request,
                             v1::ReleaseProgramsResponse* response);

// Binds the call of a prepared program that `header` is. Errors: PreparedPrograms::Find's,
// PreparedProgram::Bind's, kPermissionDenied for operators that the tenant may not call (any more),
// and kInvalidArgument where the request has a program of its own, too.
absl::StatusOr<ProgramCall> BindPrepared(const ExecuteContext& context, const Tenant& tenant,
                                         const v1::ExecuteRequest& header,
                                         absl::Span<const uint64_t> payload_bytes,
                                         ResidentLookup find_resident, RegionLookup find_region);

}  // namespace opserve::server
