#include "server/observability/utilization.h"

#include <algorithm>

namespace opserve::server {

void Utilization::Sample(absl::Duration busy, absl::Time now) {
  if (!points_.empty() && now < points_.back().time) points_.clear();  // the clock was set
  points_.push_back({now, busy});
  while (points_.size() > 1 && points_[1].time <= now - kWindow) points_.pop_front();
  const Point& first = points_.front();
  if (now == first.time) return;
  const double ratio = absl::FDivDuration(busy - first.busy, now - first.time);
  // A clock that was set in between makes nonsense of one value.
  ratio_.store(std::clamp(ratio, 0.0, 1.0), std::memory_order_relaxed);
}

}  // namespace opserve::server
