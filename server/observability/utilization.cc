#include "server/observability/utilization.h"

#include <algorithm>

namespace opserve::server {

void Utilization::Sample(absl::Duration busy, absl::Time now) {
  const uint64_t end = end_.load(std::memory_order_relaxed);
  uint64_t begin = begin_.load(std::memory_order_relaxed);
  const int64_t now_ns = absl::ToUnixNanos(now);
  if (begin < end && now_ns < At(end - 1).time_ns) begin = end;  // the clock was set
  Point& point = points_[end % kPoints];
  point.time_ns = now_ns;
  point.busy_ns = absl::ToInt64Nanoseconds(busy);
  const int64_t window_begin_ns = absl::ToUnixNanos(now - kWindow);
  while (begin < end && At(begin + 1).time_ns <= window_begin_ns) ++begin;
  // Samples may come faster than expected: half of the points stay as they are for scrapes.
  begin_ = std::max(begin, end - std::min(end, kPoints / 2));
  end_ = end + 1;
}

double Utilization::RatioUntil(absl::Duration busy, absl::Time now) const {
  const uint64_t end = end_;
  const uint64_t begin = begin_;
  if (begin >= end) return 0;
  const int64_t now_ns = absl::ToUnixNanos(now);
  const int64_t window_begin_ns = absl::ToUnixNanos(now - kWindow);
  uint64_t first = begin;
  while (first + 1 < end && At(first + 1).time_ns <= window_begin_ns) ++first;
  const int64_t time_ns = now_ns - At(first).time_ns;
  if (time_ns <= 0) return 0;
  // A clock that was set in between makes nonsense of one value.
  const int64_t busy_ns = absl::ToInt64Nanoseconds(busy) - At(first).busy_ns;
  return std::clamp(static_cast<double>(busy_ns) / static_cast<double>(time_ns), 0.0, 1.0);
}

}  // namespace opserve::server
