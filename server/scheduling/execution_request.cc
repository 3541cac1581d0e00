#include "server/scheduling/execution_request.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "proto/status/status_macros.h"
#include "server/execution/contiguous_copies.h"
#include "server/scheduling/retry_pushback.h"

namespace opserve::server {
namespace {

// Estimates of the kinds of executions of one program, which has few of them: each is looked up
// once.
class KindEstimates {
 public:
  explicit KindEstimates(const CostModel& costs) : costs_(costs) {}

  const CostModel::Estimate& operator[](const CostKey& key) {
    const auto [estimate, is_new] = estimates_.try_emplace({key.op, key.dtype, key.work});
    if (is_new) estimate->second = costs_.EstimateFor(key.op, key.dtype, key.work);
    return estimate->second;
  }

  // function(CostKey, Estimate) for each kind that was looked up.
  template <typename Function>
  void ForEach(Function function) const {
    for (const auto& [kind, estimate] : estimates_) {
      const auto& [op, dtype, work] = kind;
      function(CostKey{op, dtype, work}, estimate);
    }
  }

 private:
  const CostModel& costs_;
  absl::flat_hash_map<std::tuple<uint32_t, uint32_t, uint64_t>, CostModel::Estimate> estimates_;
};

// function(CostKey) for each launch of the invocations from `first` to before `end`: they, and the
// copies that they read.
template <typename Function>
void ForEachLaunch(const Program& program, uint32_t first, uint32_t end, Function function) {
  for (uint32_t i = first; i < end; ++i) {
    for (const ContiguousCopy& copy : CopiesBefore(program, i)) function(copy.call.cost_key());
    function(program.invocations[i].cost_key());
  }
}

// Sets also where to wait in between: no wait is for more than 50 ms of work that is known, or one
// invocation. The execution timeout holds for each wait, so an invocation that never ran, which may
// take any time, has one of its own.
CostModel::Estimate EstimateCost(ProgramCall* bound, const CostModel& costs) {
  constexpr absl::Duration kSlice = absl::Milliseconds(50);
  const Program& program = *bound->program;
  if (program.launches() == 1) {
    const CostKey key = program.invocations.front().cost_key();
    return costs.EstimateFor(key.op, key.dtype, key.work);
  }
  bound->slice_ends.clear();  // of an earlier call of the same program
  KindEstimates estimates(costs);
  CostModel::Estimate total{.time = absl::ZeroDuration(), .samples = UINT32_MAX};
  absl::Duration slice;
  bool is_alone = false;  // the slice ends with the invocation before
  for (uint32_t i = 0; i < program.invocations.size(); ++i) {
    CostModel::Estimate one{.time = absl::ZeroDuration(), .samples = UINT32_MAX};
    ForEachLaunch(program, i, i + 1, [&](const CostKey& key) {
      const CostModel::Estimate& launch = estimates[key];
      one.time += launch.time;
      one.samples = std::min(one.samples, launch.samples);
    });
    total.time += one.time;
    total.samples = std::min(total.samples, one.samples);
    const bool is_unknown = one.samples == 0;
    if (i > 0 && (is_alone || is_unknown || slice + one.time > kSlice)) {
      bound->slice_ends.push_back(i);
      slice = absl::ZeroDuration();
    }
    slice += one.time;
    is_alone = is_unknown;
  }
  return total;
}

// Learns from the invocations from `first` to before `end`, which took `took` together: each kind
// gets the part that it was estimated to take.
void RecordCosts(const Program& program, uint32_t first, uint32_t end, absl::Duration took,
                 CostModel* costs) {
  if (end == first + 1 && CopiesBefore(program, first).empty()) {
    const CostKey key = program.invocations[first].cost_key();
    costs->Record(key.op, key.dtype, key.work, took);
    return;
  }
  KindEstimates estimates(*costs);
  absl::Duration total;
  ForEachLaunch(program, first, end, [&](const CostKey& key) { total += estimates[key].time; });
  if (total <= absl::ZeroDuration()) return;
  const double scale = absl::FDivDuration(took, total);
  estimates.ForEach([&](const CostKey& key, const CostModel::Estimate& estimate) {
    costs->Record(key.op, key.dtype, key.work, estimate.time * scale);
  });
}

// Whether a thread with other duties may start it itself: there is little to copy, and executions
// like it were short.
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

ExecutionRequest::ExecutionRequest(codec::PayloadMessage message, ProgramCall bound,
                                   std::shared_ptr<CallState> call, uint32_t tenant,
                                   uint64_t connection, Priority priority, CostModel& costs,
                                   const StageClock& clock, Done done)
    : LaneTask(std::move(call), bound.residents.empty() ? bound.device() : std::nullopt,
               TaskDemand{.tenant = tenant,
                          .priority = priority,
                          .cost = EstimateCost(&bound, costs),
                          .work = bound.program->work,
                          .device_bytes = bound.program->memory_plan.total_bytes,
                          .pinned_bytes = bound.PinnedBytes(),
                          .connection = connection}),
      message_(std::move(message)),
      bound_(std::move(bound)),
      costs_(costs),
      is_prompt_(IsPrompt(program(), demand().cost)),
      clock_(clock),
      done_(std::move(done)) {}

absl::Status ExecutionRequest::Place(absl::FunctionRef<absl::Status(ProgramCall* call)> book) {
  // Booking chooses the device for tensors that are to be kept; only then is it known.
  OPSERVE_RETURN_IF_ERROR(book(&bound_));
  set_device(bound_.device());
  return absl::OkStatus();
}

bool ExecutionRequest::Queue(LaneContext& lane) {
  clock_.Book(Stage::kQueue);
  start_ = lane.start;
  // For the hint to the caller, should the run lack memory.
  drain_time_ = lane.drain_time;
  auto& run =
      run_.emplace<ProgramRun>(bound_, message_.payloads(), *call(), demand().tenant, lane, clock_);
  if (run.Queue()) return true;
  run_.emplace<std::monostate>();
  return false;
}

void ExecutionRequest::Finish() {
  auto& run = std::get<ProgramRun>(run_);
  absl::StatusOr<ProgramResult> result = run.Finish();
  if (absl::IsCancelled(result.status())) {
    // It may have been the deadline for which the caller left.
    if (absl::Status why = call()->Check(); !why.ok()) result = why;
  }
  if (!result.ok()) result = WithPushback(result.status(), drain_time_);
  if (result.ok()) RecordRun(run.slice_waits());
  run_ = std::move(result);
}

void ExecutionRequest::RecordRun(absl::Span<const absl::Time> waits) {
  absl::Time begin = start_;
  uint32_t first = 0;
  // A run that was replayed had no slices.
  for (size_t i = 0; i < waits.size(); ++i) {
    const uint32_t end = bound_.slice_ends[i];
    RecordCosts(program(), first, end, waits[i] - begin, &costs_);
    begin = waits[i];
    first = end;
  }
  const auto last = static_cast<uint32_t>(program().invocations.size());
  RecordCosts(program(), first, last, absl::Now() - begin, &costs_);
}

// Released before the answer: after it, the client may expect that no device uses the memory any
// more, and the daemon that no memory has to be unregistered after its last call.
void ExecutionRequest::ReleaseSharedMemory() { bound_.windows.clear(); }

void ExecutionRequest::Answer() {
  ReleaseSharedMemory();
  auto& result = std::get<absl::StatusOr<ProgramResult>>(run_);
  if (!result.ok()) bound_.kept.clear();
  done_(*this, std::move(result));
}

void ExecutionRequest::Refuse(const absl::Status& status) {
  clock_.Book(Stage::kQueue);
  ReleaseSharedMemory();
  bound_.kept.clear();
  done_(*this, status);
}

}  // namespace opserve::server
