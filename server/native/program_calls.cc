#include "server/native/program_calls.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/status/status_macros.h"
#include "server/native/native_request.h"
#include "server/native/result_message.h"
#include "server/native/tensor_service.h"
#include "server/request/admission.h"
#include "server/request/refusal.h"
#include "server/request/request_digest.h"
#include "server/run/prepared_programs.h"

namespace opserve::server {
namespace {

// So that the registry's lock is not held for long.
constexpr int kMaxProgramHandles = 1024;

// Equal for equal programs.
std::string KeyOf(const v1::PrepareRequest& request) {
  v1::PrepareRequest inputs;
  *inputs.mutable_inputs() = request.inputs();
  std::string key;
  for (const std::string& fields :
       {request.program().SerializeAsString(), inputs.SerializeAsString()}) {
    const RequestDigest digest = DigestOf(fields, {});
    key.append(digest.begin(), digest.end());
  }
  return key;
}

// The program that the caller may prepare. Each call has results of the template's sizes, so their
// size is checked once.
absl::StatusOr<PreparedProgram> Make(const RequestContext& context,
                                     const v1::PrepareRequest& request,
                                     ResidentLookup find_resident) {
  OPSERVE_ASSIGN_OR_RETURN(PreparedProgram program, MakePrepared(request, *context.operators,
                                                                 context.limits, find_resident));
  OPSERVE_RETURN_IF_ERROR(CheckResponseFits(program.program(), context.max_response_bytes));
  if (context.prepared->limits().are_deposited) program.KeepRequest(TemplateBytes(request));
  return program;
}

// Before an equal program is looked for, which the tenant may have prepared under other rules.
absl::Status CheckMayCallAll(const Tenant& tenant, const v1::ExecuteRequest& program) {
  for (const v1::Invocation& invocation : program.invocations()) {
    OPSERVE_RETURN_IF_ERROR(tenant.CheckMayCall(invocation.operator_()));
  }
  return absl::OkStatus();
}

// Of those whose lease lasts.
absl::StatusOr<std::vector<PreparedPrograms::Arrived>> ReadHandles(
    const v1::DepositedProgram& program, absl::Duration longest, absl::Time now) {
  if (program.handles().empty() || program.handles_size() > kMaxDepositedHandles) {
    return InvalidField("handles", absl::StrCat("there are ", program.handles_size(),
                                                ", expected 1 to ", kMaxDepositedHandles));
  }
  std::vector<PreparedPrograms::Arrived> handles;
  absl::flat_hash_set<absl::string_view> seen;
  for (const v1::DepositedHandle& given : program.handles()) {
    if (given.handle().size() != PreparedPrograms::kHandleBytes) {
      return InvalidField("handle", absl::StrCat("has ", given.handle().size(), " bytes, expected ",
                                                 PreparedPrograms::kHandleBytes));
    }
    if (!seen.insert(given.handle()).second) return InvalidField("handle", "occurs twice");
    // The sender's limit may be another than this daemon's.
    const absl::Duration lease = std::min(ToDuration(given.lease()), longest);
    const absl::Duration left = std::min(ToDuration(given.lease_left()), lease);
    if (left > absl::ZeroDuration()) handles.push_back({given.handle(), lease, now + left});
  }
  return handles;
}

}  // namespace

absl::Status Prepare(const RequestContext& context, Tenant& tenant,
                     const v1::PrepareRequest& request, v1::PrepareResponse* response) {
  if (context.is_draining.load(std::memory_order_acquire)) return DrainingError(context.moved_to);
  const absl::Time now = absl::Now();
  OPSERVE_RETURN_IF_ERROR(tenant.BeginRequest(request.ByteSizeLong(), now));
  // A preparation counts as a request in progress.
  const absl::Cleanup end = [&tenant] { tenant.EndRequest(); };
  OPSERVE_ASSIGN_OR_RETURN(const absl::Duration lease,
                           ReadLease(request.lease(), context.prepared->limits().max_lease));
  OPSERVE_RETURN_IF_ERROR(CheckMayCallAll(tenant, request.program()));
  const auto find_resident = [&](absl::string_view handle) {
    return context.residents->Find(tenant.id(), handle, now);
  };
  const auto make = [&] { return Make(context, request, find_resident); };
  OPSERVE_ASSIGN_OR_RETURN(
      PreparedPrograms::Added added,
      context.prepared->Prepare(tenant.id(), KeyOf(request), lease, now, make));
  response->set_handle(std::move(added.handle));
  *response->mutable_lease_end() = ToTimestamp(added.lease_end);
  response->set_shared(added.is_shared);
  response->set_host_bytes(added.program->program().host_account->bytes());
  DescribeResults(added.program->program(), response->mutable_results());
  return absl::OkStatus();
}

absl::Status AdoptProgram(const RequestContext& context, const Tenant& owner,
                          const v1::DepositedProgram& program) {
  OPSERVE_ASSIGN_OR_RETURN(std::vector<PreparedPrograms::Arrived> handles,
                           ReadHandles(program, context.prepared->limits().max_lease, absl::Now()));
  // Binding looks at a tensor's dtype and shape alone; a call looks for the tensor itself.
  absl::flat_hash_map<absl::string_view, std::shared_ptr<ResidentTensor>> residents;
  for (const v1::DepositedTensor& given : program.residents()) {
    auto tensor = std::make_shared<ResidentTensor>();
    OPSERVE_ASSIGN_OR_RETURN(tensor->spec, ReadSpec(given.dtype(), given.shape()));
    residents.emplace(given.handle(), std::move(tensor));
  }
  if (handles.empty()) return absl::OkStatus();
  OPSERVE_RETURN_IF_ERROR(CheckMayCallAll(owner, program.program().program()));
  const auto find_resident =
      [&](absl::string_view handle) -> absl::StatusOr<std::shared_ptr<ResidentTensor>> {
    const auto found = residents.find(handle);
    if (found == residents.end()) {
      return InvalidField("residents", "a tensor is missing that the program names");
    }
    return found->second;
  };
  const auto make = [&] { return Make(context, program.program(), find_resident); };
  return context.prepared->Adopt(owner.id(), KeyOf(program.program()), std::move(handles), make);
}

absl::Status ReleasePrograms(const RequestContext& context, const Tenant& tenant,
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

}  // namespace opserve::server
