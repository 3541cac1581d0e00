#include "server/request/admission.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/program/bind_program.h"
#include "server/request/refusal.h"

namespace opserve::server {
namespace {

absl::Status CheckIdentity(const GivenRequest& request) {
  constexpr size_t kClientBytes = 16;
  if (!request.identity) return absl::OkStatus();
  const RequestIdentity& identity = *request.identity;
  const auto invalid = [](absl::string_view problem) {
    return InvalidCall("", "identity", problem, 0);
  };
  if (!request.idempotency_key.empty()) {
    return invalid("a request has an identity or an idempotency_key, not both");
  }
  if (identity.client.size() != kClientBytes) {
    return invalid(absl::StrCat("its client has ", identity.client.size(), " bytes, ", kClientBytes,
                                " expected"));
  }
  if (identity.answered_below > identity.number) {
    return invalid(absl::StrCat("answered_below is ", identity.answered_below,
                                ", above the request's own number, ", identity.number));
  }
  return absl::OkStatus();
}

// The region of a range that the request names.
absl::StatusOr<std::shared_ptr<SharedRegion>> FindRegion(const RequestContext& context,
                                                         const RequestInput& input,
                                                         const MemoryRange& range) {
  const bool is_named = !input.named_regions.empty();
  if (!is_named && context.shared_regions == nullptr) return NoSharedMemory(range);
  // Peers on the Unix socket may use memory of this machine; others cannot even have any.
  if (!is_named && !input.is_local) {
    return MakeError(Reason::kForbidden, "shared memory can be used over Unix sockets only");
  }
  if (!input.asked.idempotency_key.empty()) {
    return MakeError(
        Reason::kShmInvalid,
        "a request with an idempotency_key cannot use shared memory, whose contents may change "
        "from one repetition to the next");
  }
  if (is_named) return input.named_regions[range.region];
  return context.shared_regions->Find(input.tenant->id(), range.connection, range.region);
}

// Whether every operator of the program can still be had: if not, binding anew tells why.
bool IsAvailable(const Program& program) {
  return std::all_of(program.operators.begin(), program.operators.end(),
                     [](const LoadedOperator* op) { return op->CheckAvailable().ok(); });
}

absl::Status CheckMayCall(const RequestInput& input) {
  for (const GivenInvocation& invocation : input.asked.program.invocations) {
    OPSERVE_RETURN_IF_ERROR(input.tenant->CheckMayCall(invocation.operator_name));
  }
  return absl::OkStatus();
}

absl::Status CheckResults(const RequestContext& context, const RequestInput& input,
                          const Program& program) {
  return input.held_limit != nullptr ? absl::OkStatus()
                                     : CheckResponseFits(program, context.max_response_bytes);
}

// A call of a prepared program.
absl::StatusOr<ProgramCall> BindPrepared(const RequestContext& context, const RequestInput& input,
                                         absl::Span<const uint64_t> payload_bytes,
                                         ResidentLookup find_resident, RegionLookup find_region) {
  const ProgramRequest& own = input.asked.program;
  if (!own.invocations.empty() || !own.results.empty() || !own.donated.empty() ||
      !own.donated_inputs.empty()) {
    return CallError(Reason::kInvalid, {.argument = "prepared"},
                     "the request has a program of its own, too: invocations, results, donated or "
                     "donated_inputs");
  }
  const PreparedRequest& call = *input.asked.prepared;
  OPSERVE_ASSIGN_OR_RETURN(const std::shared_ptr<const PreparedProgram> prepared,
                           context.prepared->Find(input.tenant->id(), call.program, absl::Now()));
  // The configuration may have changed since.
  for (const LoadedOperator* op : prepared->program().operators) {
    OPSERVE_RETURN_IF_ERROR(input.tenant->CheckMayCall(op->descriptor->name));
  }
  return prepared->Bind(call, payload_bytes, find_resident, find_region);
}

absl::Status BindWith(const RequestContext& context, const RequestInput& input,
                      absl::Span<const uint64_t> payload_bytes,
                      absl::Span<const std::shared_ptr<ResidentTensor>> apart, ProgramCall* bound) {
  const auto find_resident = [&](absl::string_view handle) {
    return context.residents->Find(input.tenant->id(), handle, absl::Now());
  };
  const auto find_region = [&](const MemoryRange& range) {
    return FindRegion(context, input, range);
  };
  // Of a prepared program the results were checked once.
  if (input.asked.prepared) {
    OPSERVE_ASSIGN_OR_RETURN(
        *bound, BindPrepared(context, input, payload_bytes, find_resident, find_region));
    bound->apart.assign(apart.begin(), apart.end());
    return absl::OkStatus();
  }
  OPSERVE_ASSIGN_OR_RETURN(*bound,
                           BindApart(input.asked.program, payload_bytes, apart, *context.operators,
                                     context.limits, find_resident, find_region));
  return CheckResults(context, input, *bound->program);
}

// Of the results that travel as payloads. Requires: there is one.
OutputRef LargestResult(const Program& program) {
  OutputRef largest = {};
  // Below 0, for results without bytes.
  int64_t largest_bytes = -1;
  for (const BoundResult& result : program.results) {
    const BoundOutput& output = program.output(result.source);
    // Kept results and those in shared memory take no room in the message.
    if (result.is_kept || output.window || NumBytes(output.spec) <= largest_bytes) continue;
    largest = result.source;
    largest_bytes = NumBytes(output.spec);
  }
  return largest;
}

}  // namespace

absl::Status LetIn(const RequestContext& context, const RequestInput& input) {
  const absl::Time now = absl::Now();
  if (context.is_draining.load(std::memory_order_acquire)) return DrainingError(context.moved_to);
  OPSERVE_RETURN_IF_ERROR(input.call->Check(now));
  OPSERVE_RETURN_IF_ERROR(CheckIdentity(input.asked));
  return input.tenant->BeginRequest(input.request_bytes, now);
}

absl::Status Bind(const RequestContext& context, const RequestInput& input,
                  const codec::PayloadMessage& message, ProgramCall* bound) {
  OPSERVE_RETURN_IF_ERROR(CheckMayCall(input));
  if (input.known != nullptr && !input.asked.prepared && IsAvailable(*input.known)) {
    bound->program = input.known;
    // A client that takes more may have brought it here.
    return CheckResults(context, input, *bound->program);
  }
  absl::InlinedVector<uint64_t, 8> payload_bytes;
  for (const codec::Payload& payload : message.payloads()) payload_bytes.push_back(payload.size);
  OPSERVE_RETURN_IF_ERROR(BindWith(context, input, payload_bytes, {}, bound));
  if (input.keeper != nullptr && input.known == nullptr) {
    bound->program = input.keeper->Keep(message, *bound);
  }
  return absl::OkStatus();
}

absl::Status BindAnnounced(const RequestContext& context, const RequestInput& input,
                           absl::Span<const uint64_t> payload_bytes,
                           absl::Span<const std::shared_ptr<ResidentTensor>> apart,
                           ProgramCall* bound) {
  OPSERVE_RETURN_IF_ERROR(CheckMayCall(input));
  return BindWith(context, input, payload_bytes, apart, bound);
}

int OperatorOf(const RequestContext& context, const GivenRequest& request) {
  const auto& invocations = request.program.invocations;
  if (invocations.size() > 1 || request.prepared) return RequestMetrics::kProgram;
  if (invocations.empty()) return RequestMetrics::kUnknown;
  const LoadedOperator* op = context.operators->Find(invocations.front().operator_name);
  return op != nullptr ? op->index : RequestMetrics::kUnknown;
}

int OperatorOf(const Program& program) {
  return program.operator_index().value_or(RequestMetrics::kProgram);
}

absl::Status CheckResponseFits(const Program& program, uint64_t limit) {
  // More than everything but payloads can take: names, shapes and the receipt.
  constexpr uint64_t kHeaderBytes = 64 << 10;
  const uint64_t bytes = kHeaderBytes + program.result_bytes;
  if (bytes <= limit) return absl::OkStatus();
  const OutputRef largest = LargestResult(program);
  const BoundInvocation& invocation = program.invocations[largest.invocation];
  return WithLimit(
      limit,
      CallError(
          Reason::kTooLarge,
          {.operator_name = invocation.op->descriptor->name,
           .argument = invocation.OutputName(largest.output),
           .invocation = largest.invocation},
          absl::StrCat("is the largest of results that make a message of about ", bytes,
                       " bytes, at most ", limit,
                       " allowed (--max_message_bytes); keep large results as resident tensors and "
                       "download them, or take them in shared memory")));
}

}  // namespace opserve::server
