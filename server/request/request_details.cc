#include "server/request/request_details.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/device/memory/pool_outcome.h"

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

// As Receipt.PoolOutcome has it. A run without device memory has not asked the pool.
std::string OutcomeName(const ProgramResult& result) {
  const absl::string_view name =
      result.device_memory_bytes == 0 ? "unspecified" : kPoolOutcomeNames[result.pool_outcome];
  return absl::StrCat("POOL_OUTCOME_", absl::AsciiStrToUpper(name));
}

}  // namespace

std::shared_ptr<const RequestDetails> DetailsOf(const Program& program,
                                                const absl::StatusOr<ProgramResult>& result) {
  auto details = std::make_shared<RequestDetails>();
  details->program = absl::StrJoin(program.invocations, "; ", AppendInvocation);
  // A request that failed has no place to tell.
  if (result.ok()) {
    details->lane = result->lane;
    details->plan_misses = result->plan_misses;
    details->device_memory_bytes = result->device_memory_bytes;
    details->pool_outcome = OutcomeName(*result);
  }
  return details;
}

}  // namespace opserve::server
