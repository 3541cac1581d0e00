#include "server/scheduling/execution_request.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace opserve::server {
namespace {

CostModel::Estimate EstimateCost(const Program& program, const CostModel& costs) {
  CostModel::Estimate total{.time = absl::ZeroDuration(), .samples = UINT32_MAX};
  for (const BoundInvocation& invocation : program.invocations) {
    const CostKey key = invocation.cost_key();
    const CostModel::Estimate one = costs.EstimateFor(key.op, key.dtype, key.work);
    total.time += one.time;
    total.samples = std::min(total.samples, one.samples);
  }
  return total;
}

// Where to wait in between, so that no wait is for much more than 50 ms of work.
std::vector<uint32_t> SliceEnds(const Program& program, const CostModel& costs) {
  constexpr absl::Duration kSlice = absl::Milliseconds(50);
  std::vector<uint32_t> ends;
  absl::Duration time;
  for (uint32_t i = 0; i + 1 < program.invocations.size(); ++i) {
    const CostKey key = program.invocations[i].cost_key();
    time += costs.EstimateFor(key.op, key.dtype, key.work).time;
    if (time < kSlice) continue;
    ends.push_back(i + 1);
    time = absl::ZeroDuration();
  }
  return ends;
}

// What a thread that has other things to do may start itself: little to copy, and executions like
// it were over soon.
bool IsPrompt(const Program& program, const CostModel::Estimate& cost) {
  constexpr uint64_t kMostBytes = 64 << 10;
  constexpr uint32_t kLeastSamples = 4;
  constexpr absl::Duration kLongestTime = absl::Milliseconds(1);
  if (cost.samples < kLeastSamples || cost.time > kLongestTime) return false;
  if (!program.windows.empty()) return false;  // registering memory with a device takes its time
  if (!program.kept.empty()) return false;     // their memory is waited for
  return program.payload_bytes + program.output_bytes <= kMostBytes;
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
                          .device_bytes = program.memory_plan.total_bytes,
                          .pinned_bytes = program.pinned_bytes,
                          .connection = connection}),
      message_(std::move(message)),
      program_(std::move(program)),
      costs_(costs),
      is_prompt_(IsPrompt(program_, demand().cost)),
      clock_(clock),
      done_(std::move(done)) {
  if (program_.invocations.size() > 1) program_.slice_ends = SliceEnds(program_, costs);
}

bool ExecutionRequest::Queue(LaneContext& lane) {
  clock_.Book(Stage::kQueue);
  start_ = absl::Now();
  run_.emplace(program_, message_.payloads(), *call(), demand().tenant, lane, clock_);
  if (run_->Queue()) return true;
  run_.reset();
  return false;
}

void ExecutionRequest::Finish() {
  result_ = run_->Finish();
  run_.reset();
  if (absl::IsCancelled(result_->status())) {
    // It may have been the deadline for which the caller left.
    if (absl::Status why = call()->Check(); !why.ok()) result_ = why;
  }
  if (result_->ok() && program_.invocations.size() == 1) {
    const CostKey key = program_.invocations.front().cost_key();
    costs_.Record(key.op, key.dtype, key.work, absl::Now() - start_);
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
