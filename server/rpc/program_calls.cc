#include "server/rpc/program_calls.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/execution/prepared_programs.h"
#include "server/rpc/execute_response.h"
#include "server/rpc/refusal.h"
#include "server/rpc/request_digest.h"
#include "server/rpc/tensor_service.h"

namespace opserve::server {
namespace {

// So that the registry's lock is not held for long.
constexpr int kMaxProgramHandles = 1024;

// Equal for equal programs.
std::string KeyOf(const v1::PrepareRequest& request) {
  v1::PrepareRequest inputs;
  *inputs.mutable_inputs() = request.inputs();
  std::string key;
  for (const RequestDigest& digest : {DigestOf(request.program(), {}), DigestOf(inputs, {})}) {
    key.append(digest.begin(), digest.end());
  }
  return key;
}

}  // namespace

absl::Status Prepare(const ExecuteContext& context, Tenant& tenant,
                     const v1::PrepareRequest& request, v1::PrepareResponse* response) {
  if (context.is_draining.load(std::memory_order_acquire)) return DrainingError(context.moved_to);
  const absl::Time now = absl::Now();
  OPSERVE_RETURN_IF_ERROR(tenant.BeginRequest(request.ByteSizeLong(), now));
  // A preparation counts as a request in progress.
  const absl::Cleanup end = [&tenant] { tenant.EndRequest(); };
  OPSERVE_ASSIGN_OR_RETURN(const absl::Duration lease,
                           ReadLease(request.lease(), context.prepared->limits().max_lease));
  // Before an equal program is looked for, which the tenant may have prepared under other rules.
  for (const v1::Invocation& invocation : request.program().invocations()) {
    OPSERVE_RETURN_IF_ERROR(tenant.CheckMayCall(invocation.operator_()));
  }
  const auto find_resident = [&](absl::string_view handle) {
    return context.residents->Find(tenant.id(), handle, now);
  };
  const auto make = [&]() -> absl::StatusOr<PreparedProgram> {
    OPSERVE_ASSIGN_OR_RETURN(
        PreparedProgram program,
        PreparedProgram::Make(request, *context.operators, context.limits, find_resident));
    // Each call has results of the template's sizes, so the check is made once.
    OPSERVE_RETURN_IF_ERROR(CheckResponseFits(program.program(), context.max_response_bytes));
    return program;
  };
  OPSERVE_ASSIGN_OR_RETURN(
      PreparedPrograms::Added added,
      context.prepared->Prepare(tenant.id(), KeyOf(request), lease, now, make));
  response->set_handle(std::move(added.handle));
  *response->mutable_lease_end() = ToTimestamp(added.lease_end);
  response->set_shared(added.is_shared);
  response->set_host_bytes(added.host_bytes);
  return absl::OkStatus();
}

absl::Status ReleasePrograms(const ExecuteContext& context, const Tenant& tenant,
                             const v1::ReleaseProgramsRequest& request,
                             v1::ReleaseProgramsResponse* response) {
  // The list is worked through under one lock, which other tenants' calls need as well.
  if (request.handles_size() > kMaxProgramHandles) {
    return InvalidField("handles", absl::StrCat(request.handles_size(), " given, at most ",
                                                kMaxProgramHandles, " allowed"));
  }
  const std::vector<std::string> handles(request.handles().begin(), request.handles().end());
  response->set_released(context.prepared->Release(tenant.id(), handles));
  return absl::OkStatus();
}

absl::StatusOr<ProgramCall> BindPrepared(const ExecuteContext& context, const Tenant& tenant,
                                         const v1::ExecuteRequest& header,
                                         absl::Span<const uint64_t> payload_bytes,
                                         ResidentLookup find_resident, RegionLookup find_region) {
  if (!header.invocations().empty() || !header.results().empty() || !header.donated().empty() ||
      !header.donated_inputs().empty()) {
    return InvalidField("prepared",
                        "the request has a program of its own, too: invocations, results, donated "
                        "or donated_inputs");
  }
  OPSERVE_ASSIGN_OR_RETURN(
      const std::shared_ptr<const PreparedProgram> prepared,
      context.prepared->Find(tenant.id(), header.prepared().program(), absl::Now()));
  // The configuration may have changed since.
  for (const LoadedOperator* op : prepared->program().operators) {
    OPSERVE_RETURN_IF_ERROR(tenant.CheckMayCall(op->descriptor->name));
  }
  return prepared->Bind(header.prepared(), payload_bytes, find_resident, find_region);
}

}  // namespace opserve::server
