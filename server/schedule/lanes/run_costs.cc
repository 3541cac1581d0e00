#include "server/schedule/lanes/run_costs.h"

#include <algorithm>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/time/clock.h"
#include "server/program/contiguous_copies.h"

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

}  // namespace

CostModel::Estimate EstimateCost(const CostModel& costs, ProgramCall* bound) {
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

void RecordRun(const ProgramCall& bound, absl::Time start, absl::Span<const absl::Time> waits,
               CostModel* costs) {
  const Program& program = *bound.program;
  absl::Time begin = start;
  uint32_t first = 0;
  // A run that was replayed had no slices.
  for (size_t i = 0; i < waits.size(); ++i) {
    const uint32_t end = bound.slice_ends[i];
    RecordCosts(program, first, end, waits[i] - begin, costs);
    begin = waits[i];
    first = end;
  }
  const auto last = static_cast<uint32_t>(program.invocations.size());
  RecordCosts(program, first, last, absl::Now() - begin, costs);
}

bool IsPrompt(const Program& program, const CostModel::Estimate& cost) {
  constexpr uint64_t kMostBytes = 64 << 10;
  constexpr uint32_t kLeastSamples = 4;
  constexpr absl::Duration kLongestTime = absl::Milliseconds(1);
  if (cost.samples < kLeastSamples || cost.time > kLongestTime) return false;
  if (!program.kept.empty()) return false;  // their memory is waited for
  uint64_t bytes = program.payload_bytes + program.output_bytes;
  // Results that are written in place are not touched by this thread.
  for (const WindowUse& window : program.windows) {
    if (window.writer) bytes -= window.bytes;
  }
  return bytes <= kMostBytes;
}

}  // namespace opserve::server
