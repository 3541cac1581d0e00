#include "server/scheduling/execution_request.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/time/clock.h"
#include "server/execution/memory_plan.h"

namespace opserve::server {
namespace {

// Where executions like this invocation are found in the cost model.
struct CostKey {
  explicit CostKey(const BoundInvocation& invocation)
      : op(static_cast<uint32_t>(invocation.op->index)),
        dtype(static_cast<uint32_t>(invocation.output.dtype)),
        work(invocation.work) {}
  uint32_t op;
  uint32_t dtype;
  uint64_t work;
};

CostModel::Estimate EstimateCost(const Program& program, const CostModel& costs) {
  CostModel::Estimate total{.time = absl::ZeroDuration(), .samples = UINT32_MAX};
  for (const BoundInvocation& invocation : program.invocations) {
    const CostKey key(invocation);
    const CostModel::Estimate one = costs.EstimateFor(key.op, key.dtype, key.work);
    total.time += one.time;
    total.samples = std::min(total.samples, one.samples);
  }
  return total;
}

uint64_t DeviceBytes(const Program& program, const codec::PayloadMessage& message) {
  absl::InlinedVector<uint64_t, 4> payload_bytes;
  for (const codec::Payload& payload : message.payloads()) payload_bytes.push_back(payload.size);
  // Workspaces are known only after stage one, and shared memory that has to be copied only on the
  // device.
  const absl::InlinedVector<uint64_t, 4> no_workspaces(program.invocations.size());
  return PlanMemory(program, payload_bytes, no_workspaces).total_bytes;
}

// What a thread that has other things to do may start itself: little to copy, and executions like
// it were over soon.
bool IsPrompt(const Program& program, const codec::PayloadMessage& message,
              const CostModel::Estimate& cost) {
  constexpr uint64_t kMostBytes = 64 << 10;
  constexpr uint32_t kLeastSamples = 4;
  constexpr absl::Duration kLongestTime = absl::Milliseconds(1);
  if (cost.samples < kLeastSamples || cost.time > kLongestTime) return false;
  if (!program.windows.empty()) return false;  // registering memory with a device takes its time
  uint64_t bytes = 0;
  for (const codec::Payload& payload : message.payloads()) bytes += payload.size;
  for (const BoundInvocation& invocation : program.invocations) {
    bytes += static_cast<uint64_t>(NumBytes(invocation.output));
  }
  return bytes <= kMostBytes;
}

uint64_t PinnedBytes(const Program& program) {
  uint64_t bytes = 0;
  // Each that is not mapped has one buffer, be it an input or where a result goes.
  for (const SharedWindow& window : program.windows) {
    if (window.IsStaged()) bytes += PinnedPool::BlockBytes(window.range.size());
  }
  for (const uint32_t source : program.results) {
    if (program.invocations[source].window) continue;
    bytes += PinnedPool::BlockBytes(NumBytes(program.invocations[source].output));
  }
  return bytes;
}

}  // namespace

ExecutionRequest::ExecutionRequest(codec::PayloadMessage message, Program program,
                                   std::shared_ptr<CallState> call, uint32_t tenant,
                                   uint64_t connection, Priority priority, CostModel& costs,
                                   const StageClock& clock, Done done)
    : LaneTask(std::move(call), program.device(),
               TaskDemand{.tenant = tenant,
                          .priority = priority,
                          .cost = EstimateCost(program, costs),
                          .work = program.work,
                          .device_bytes = DeviceBytes(program, message),
                          .pinned_bytes = PinnedBytes(program),
                          .connection = connection}),
      message_(std::move(message)),
      program_(std::move(program)),
      costs_(costs),
      is_prompt_(IsPrompt(program_, message_, demand().cost)),
      clock_(clock),
      done_(std::move(done)) {}

void ExecutionRequest::SetResult(absl::StatusOr<ProgramResult> result) {
  result_ = std::move(result);
  if (absl::IsCancelled(result_->status())) {
    // It may have been the deadline for which the caller left.
    if (absl::Status why = call()->Check(); !why.ok()) result_ = why;
  }
  if (result_->ok() && program_.invocations.size() == 1) {
    const CostKey key(program_.invocations.front());
    costs_.Record(key.op, key.dtype, key.work, absl::Now() - start_);
  }
}

void ExecutionRequest::Run(LaneContext& lane) {
  clock_.Book(Stage::kQueue);
  start_ = absl::Now();
  SetResult(RunProgram(program_, message_.payloads(), *call(), demand().tenant, lane, clock_));
}

bool ExecutionRequest::Start(LaneContext& lane) {
  clock_.Book(Stage::kQueue);
  start_ = absl::Now();
  prompt_run_.emplace(program_, message_.payloads(), *call(), demand().tenant, lane, clock_);
  if (prompt_run_->Start()) return true;
  prompt_run_.reset();
  return false;
}

void ExecutionRequest::Finish() {
  SetResult(prompt_run_->Finish());
  prompt_run_.reset();
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
