#include "server/schedule/policy/cost_model.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"

namespace opserve::server {
namespace {

constexpr int kCountBits = 16;
constexpr uint64_t kMostCount = (uint64_t{1} << kCountBits) - 1;
constexpr uint64_t kLongestRunNs = (uint64_t{1} << (64 - kCountBits)) - 1;  // 78 hours
// The newest execution counts for an eighth: noise is smoothed, a change is learned in a dozen.
constexpr uint64_t kMemory = 8;

}  // namespace

CostModel::CostModel(const Options& options)
    : options_(options),
      buckets_(std::make_unique<Bucket[]>(size_t{options.operators} * options.dtypes * kSizes)) {}

int CostModel::SizeOf(uint64_t work) { return std::min<int>(std::bit_width(work), kSizes - 1); }

CostModel::Sample CostModel::Unpack(uint64_t word) {
  return {word >> kCountBits, static_cast<uint32_t>(word & kMostCount)};
}

void CostModel::Record(uint32_t op, uint32_t dtype, uint64_t work, absl::Duration took) {
  Bucket& bucket = buckets_[IndexOf(op, dtype) + SizeOf(work)];
  const auto ns =
      std::min<uint64_t>(std::max<int64_t>(absl::ToInt64Nanoseconds(took), 0), kLongestRunNs);
  uint64_t word = bucket.load(std::memory_order_relaxed);
  while (true) {
    // Again where another lane has recorded meanwhile: no sample is lost.
    const auto [mean, count] = Unpack(word);
    // The plain mean of the first few.
    const uint64_t weight = std::min<uint64_t>(count + 1, kMemory);
    const uint64_t next_mean =
        ns >= mean ? mean + (ns - mean) / weight : mean - (mean - ns) / weight;
    const uint64_t next = (next_mean << kCountBits) | std::min<uint64_t>(count + 1, kMostCount);
    if (bucket.compare_exchange_weak(word, next, std::memory_order_relaxed)) return;
  }
}

absl::Duration CostModel::FromNeighbour(size_t first, int size) const {
  for (int distance = 0; distance < kSizes; ++distance) {
    // Of two equally near sizes the smaller one counts.
    for (const int neighbour : {size - distance, size + distance}) {
      if (neighbour < 0 || neighbour >= kSizes) continue;
      const Sample sample = Unpack(buckets_[first + neighbour].load(std::memory_order_relaxed));
      if (sample.count == 0) continue;
      // A size has about twice the work of the one below.
      return std::ldexp(1.0, size - neighbour) *
             absl::Nanoseconds(static_cast<int64_t>(sample.mean_ns));
    }
  }
  return absl::ZeroDuration();
}

CostModel::Estimate CostModel::EstimateFor(uint32_t op, uint32_t dtype, uint64_t work) const {
  const int size = SizeOf(work);
  const size_t own = IndexOf(op, dtype);
  const Sample sample = Unpack(buckets_[own + size].load(std::memory_order_relaxed));
  if (sample.count > 0) {
    return {absl::Nanoseconds(static_cast<int64_t>(sample.mean_ns)), sample.count};
  }
  // First the same type of element; then any.
  absl::Duration time = FromNeighbour(own, size);
  for (uint32_t other = 0; other < options_.dtypes && time == absl::ZeroDuration(); ++other) {
    time = FromNeighbour(IndexOf(op, other), size);
  }
  return {time == absl::ZeroDuration() ? options_.unknown : time, 0};
}

absl::Duration KnownTime(const CostModel::Estimate& estimate) {
  return estimate.samples < kSamplesForRefusal ? absl::ZeroDuration() : estimate.time;
}

absl::Time LatestStart(absl::Time deadline, const CostModel::Estimate& own) {
  return deadline - KnownTime(own);
}

bool IsDeadlineFeasible(absl::Time now, absl::Time deadline, const CostModel::Estimate& own,
                        absl::Duration queued_before, uint32_t lanes) {
  if (own.samples < kSamplesForRefusal) return true;
  // Mostly nothing waits, and to divide a duration takes long.
  const bool waits = queued_before > absl::ZeroDuration();
  return (waits ? now + queued_before / lanes : now) <= LatestStart(deadline, own);
}

absl::Status DeadlineInfeasible(absl::Duration cost, absl::Duration left) {
  return MakeError(Reason::kDeadlineInfeasible,
                   absl::StrCat("the request takes about ", absl::FormatDuration(cost),
                                " once it starts, which would be too late: its deadline is in ",
                                absl::FormatDuration(left)),
                   kNeverRetry);
}

}  // namespace opserve::server
