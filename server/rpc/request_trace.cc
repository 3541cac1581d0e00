#include "server/rpc/request_trace.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/rpc/execute_response.h"

namespace opserve::server {
namespace {

// "KlDivBackward(FLOAT [4, 5], FLOAT [4, 5])"
void AppendInvocation(std::string* text, const BoundInvocation& invocation) {
  const auto append_input = [](std::string* to, const BoundInput& input) {
    absl::StrAppend(to, DtypeName(input.spec.dtype), " ", ShapeText(input.spec.shape));
  };
  absl::StrAppend(text, invocation.op->descriptor->name, "(",
                  absl::StrJoin(invocation.inputs, ", ", append_input), ")");
}

}  // namespace

TraceContext TraceOf(const grpc::ServerContextBase& rpc) {
  const auto [first, last] = rpc.client_metadata().equal_range(kTraceParentKey);
  // Of several nobody knows which is meant.
  if (first == last || std::next(first) != last) return BeginSpan(std::nullopt);
  return BeginSpan(absl::string_view(first->second.data(), first->second.size()));
}

std::shared_ptr<const RequestDetails> DetailsOf(const Program& program,
                                                const absl::StatusOr<ProgramResult>& result) {
  auto details = std::make_shared<RequestDetails>();
  details->program = absl::StrJoin(program.invocations, "; ", AppendInvocation);
  // A request that failed has no place to tell.
  if (result.ok()) {
    details->lane = result->lane;
    details->plan_misses = result->plan_misses;
    details->device_memory_bytes = result->device_memory_bytes;
    details->pool_outcome = v1::Receipt::PoolOutcome_Name(PoolOutcomeOf(*result));
  }
  return details;
}

}  // namespace opserve::server
