#include "server/request/request_details.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

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

// As Receipt.PoolOutcome has it.
absl::string_view OutcomeName(const ProgramResult& result) {
  if (result.device_memory_bytes == 0) return "POOL_OUTCOME_UNSPECIFIED";
  switch (result.pool_outcome) {
    case DeviceMemoryPool::kHit:
      return "POOL_OUTCOME_HIT";
    case DeviceMemoryPool::kSplit:
      return "POOL_OUTCOME_SPLIT";
    case DeviceMemoryPool::kCrossStream:
      return "POOL_OUTCOME_CROSS_STREAM";
    case DeviceMemoryPool::kGrow:
      return "POOL_OUTCOME_GROW";
    case DeviceMemoryPool::kRetry:
      return "POOL_OUTCOME_RETRY";
    case DeviceMemoryPool::kOutOfMemory:
    case DeviceMemoryPool::kOutcomes:
      break;
  }
  return "POOL_OUTCOME_UNSPECIFIED";
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
    details->pool_outcome = std::string(OutcomeName(*result));
  }
  return details;
}

}  // namespace opserve::server
