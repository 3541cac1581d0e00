#include "server/scheduling/execution_request.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "server/execution/memory_plan.h"

namespace opserve::server {
namespace {

// Where executions like this invocation are found in the cost model.
struct CostKey {
  explicit CostKey(const BoundInvocation& invocation)
      : op(static_cast<uint32_t>(invocation.op->index)),
        dtype(static_cast<uint32_t>(invocation.output.dtype)),
        bytes(static_cast<uint64_t>(catalog::NumBytes(invocation.output))) {
    for (const BoundInput& input : invocation.inputs) {
      bytes += static_cast<uint64_t>(catalog::NumBytes(input.spec));
    }
  }
  uint32_t op;
  uint32_t dtype;
  uint64_t bytes;
};

CostModel::Estimate EstimateCost(const Program& program, const CostModel& costs) {
  CostModel::Estimate total{.time = absl::ZeroDuration(), .samples = UINT32_MAX};
  for (const BoundInvocation& invocation : program.invocations) {
    const CostKey key(invocation);
    const CostModel::Estimate one = costs.EstimateFor(key.op, key.dtype, key.bytes);
    total.time += one.time;
    total.samples = std::min(total.samples, one.samples);
  }
  return total;
}

uint64_t DeviceBytes(const Program& program, const codec::PayloadMessage& message) {
  std::vector<uint64_t> payload_bytes;
  for (const codec::Payload& payload : message.payloads()) payload_bytes.push_back(payload.size);
  // Workspaces are known only after stage one, and shared memory that has to be copied only on the
  // device.
  const std::vector<uint64_t> no_workspaces(program.invocations.size());
  return PlanMemory(program, payload_bytes, no_workspaces).total_bytes;
}

uint64_t PinnedBytes(const Program& program) {
  uint64_t bytes = 0;
  for (const uint32_t source : program.results) {
    if (program.invocations[source].window) continue;
    bytes += PinnedPool::BlockBytes(catalog::NumBytes(program.invocations[source].output));
  }
  return bytes;
}

}  // namespace

ExecutionRequest::ExecutionRequest(codec::PayloadMessage message, Program program,
                                   std::shared_ptr<CallState> call, uint32_t tenant,
                                   Priority priority, CostModel& costs, const StageClock& clock,
                                   Done done)
    : LaneTask(std::move(call), program.device(),
               TaskDemand{.tenant = tenant,
                          .priority = priority,
                          .cost = EstimateCost(program, costs),
                          .device_bytes = DeviceBytes(program, message),
                          .pinned_bytes = PinnedBytes(program)}),
      message_(std::move(message)),
      program_(std::move(program)),
      costs_(costs),
      clock_(clock),
      done_(std::move(done)) {}

void ExecutionRequest::Run(LaneContext& lane) {
  clock_.Book(Stage::kQueue);
  const absl::Time start = absl::Now();
  result_ = RunProgram(program_, message_.payloads(), *call(), demand().tenant, lane, clock_);
  if (result_->ok() && program_.invocations.size() == 1) {
    const CostKey key(program_.invocations.front());
    costs_.Record(key.op, key.dtype, key.bytes, absl::Now() - start);
  }
}

// Before the answer: who has it may expect that nothing of the request uses the memory any more,
// and the daemon that nothing has to be unregistered after its last call.
void ExecutionRequest::ReleaseSharedMemory() { program_.windows.clear(); }

void ExecutionRequest::Answer() {
  ReleaseSharedMemory();
  done_(*this, *std::move(result_));
}

void ExecutionRequest::Refuse(const absl::Status& status) {
  clock_.Book(Stage::kQueue);
  ReleaseSharedMemory();
  done_(*this, status);
}

}  // namespace opserve::server
