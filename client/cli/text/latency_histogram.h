// Latencies of any number of calls in memory of a fixed size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace opserve::cli {

// Counts latencies in buckets: one for each nanosecond at first, then 128 for each doubling, so
// that no bucket is wider than 1/128 of its values. Takes 58 KiB. Not thread-safe.
class LatencyHistogram {
 public:
  LatencyHistogram();

  // Negative ones count as zero, those beyond 292 years as that.
  void Record(absl::Duration latency);

  uint64_t count() const { return count_; }

  // Exact; zero if nothing was recorded.
  absl::Duration min() const;
  absl::Duration max() const { return absl::Nanoseconds(max_ns_); }

  // The smallest latency that `percent` (0 to 100) of all do not exceed, at most half a percent
  // off; zero if nothing was recorded.
  absl::Duration Percentile(double percent) const;

 private:
  std::vector<uint64_t> counts_;  // of each bucket
  uint64_t count_ = 0;
  int64_t min_ns_ = INT64_MAX;
  int64_t max_ns_ = 0;
};

}  // namespace opserve::cli
