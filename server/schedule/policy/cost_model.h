// The costs of executions, learned from earlier ones.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace opserve::server {

// Lane time by operator, type of element and work (its logarithm to the base of 2). Thread-safe,
// without locks; its size is fixed.
class CostModel {
 public:
  struct Options {
    uint32_t operators = 1;
    uint32_t dtypes = 1;
    absl::Duration unknown = absl::Milliseconds(1);  // of an operator that never ran
  };
  struct Estimate {
    absl::Duration time;
    uint32_t samples = 0;  // of executions like this one; 0: scaled from others, or unknown
  };

  explicit CostModel(const Options& options);

  // `op` < operators, `dtype` < dtypes. For a size that never ran: from the nearest size of the
  // same type that did, else of any type, in proportion to the work (in elements, as the operator
  // counts it).
  Estimate EstimateFor(uint32_t op, uint32_t dtype, uint64_t work) const;
  void Record(uint32_t op, uint32_t dtype, uint64_t work, absl::Duration took);

 private:
  static constexpr int kSizes = 48;  // larger ones count as the largest

  // Mean and number of samples in one word, so that a reader never sees parts of two: nanoseconds
  // above, samples (up to the most that fit) below.
  using Bucket = std::atomic<uint64_t>;
  struct Sample {
    uint64_t mean_ns;
    uint32_t count;
  };

  static int SizeOf(uint64_t work);
  static Sample Unpack(uint64_t word);
  size_t IndexOf(uint32_t op, uint32_t dtype) const {
    return (size_t{op} * options_.dtypes + dtype) * kSizes;
  }
  // From the nearest size that has samples; zero: there is none.
  absl::Duration FromNeighbour(size_t first, int size) const;

  const Options options_;
  const std::unique_ptr<Bucket[]> buckets_;
};

// Estimates from fewer executions than this are too uncertain to refuse a request for.
inline constexpr uint32_t kSamplesForRefusal = 8;

// The estimate if it is certain enough to refuse requests for it, else zero. (An estimate scaled
// up from small executions, which consist mostly of overhead, may be thousands of times too
// high.)
absl::Duration KnownTime(const CostModel::Estimate& estimate);

// When a request of `own` cost must have started at the latest to end by `deadline`: the deadline
// itself if its cost is not known well enough.
absl::Time LatestStart(absl::Time deadline, const CostModel::Estimate& own);

// Whether a request of `own` cost can end by `deadline` if only its tenant, which has
// `queued_before` of known time queued for `lanes` lanes, uses the device. True if its own cost is
// not known well enough.
bool IsDeadlineFeasible(absl::Time now, absl::Time deadline, const CostModel::Estimate& own,
                        absl::Duration queued_before, uint32_t lanes);

// The refusal of a request that would not (kDeadlineExceeded, reason "deadline_infeasible",
// pushback -1): it takes `cost`, and has `left`.
absl::Status DeadlineInfeasible(absl::Duration cost, absl::Duration left);

}  // namespace opserve::server
