// The figures that the status page draws, over the last quarter of an hour: a page opened after an
// incident shows it all the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "prometheus/metric_family.h"

namespace opserve::server {

// A ring of samples. Thread-safe.
class StatusHistory {
 public:
  static constexpr size_t kSamples = 90;
  static constexpr absl::Duration kPeriod = absl::Seconds(10);
  // Enough for some 5,000 series, a few hundred operators among them.
  static constexpr size_t kMaxBytes = 4 << 20;

  StatusHistory() = default;
  ~StatusHistory() { Stop(); }
  StatusHistory(const StatusHistory&) = delete;
  StatusHistory& operator=(const StatusHistory&) = delete;

  // Adds a sample of collect() now and once each kPeriod, on a thread of its own, until Stop. To be
  // called once.
  void Start(std::function<std::vector<prometheus::MetricFamily>()> collect);
  // Waits until collect() is not called any more. Does nothing if nothing was started.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds the figures' (status_page.h) values in `families`; the oldest sample of kSamples goes.
  // Series that would take more than kMaxBytes are left out.
  void Add(absl::Span<const prometheus::MetricFamily> families, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // {"now": T, "times": [T, ...], "series": [[KEY, LABEL_VALUE, ..., VALUES], ...]}, the oldest
  // sample first. T: milliseconds since 1970 by this machine's clock. VALUES: one number for each
  // time, null where there was none; or the number that is the same at all times.
  std::string ToJson(absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);

  size_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);            // of all series
  size_t left_out_series() const ABSL_LOCKS_EXCLUDED(mutex_);  // of the last sample

 private:
  // A figure's key and its labels' values, with kSeparator between them.
  using Name = std::string;
  struct Series {
    std::array<double, kSamples> values;  // by place in the ring; NaN: none
    uint64_t last = 0;                    // the number of the latest sample that has it
  };

  static size_t Cost(const Name& name);

  mutable absl::Mutex mutex_;
  uint64_t samples_ ABSL_GUARDED_BY(mutex_) = 0;  // so far
  std::array<absl::Time, kSamples> times_ ABSL_GUARDED_BY(mutex_);
  std::map<Name, Series> series_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace opserve::server
