#include "server/observability/utilization.h"

#include <algorithm>

namespace opserve::server {

void Utilization::Sample(absl::Duration busy, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  if (!points_.empty() && now < points_.back().time) points_.clear();  // the clock was set
  points_.push_back({now, busy});
  while (points_.size() > 1 && points_[1].time <= now - kWindow) points_.pop_front();
}

double Utilization::RatioUntil(absl::Duration busy, absl::Time now) const {
  absl::MutexLock lock(&mutex_);
  if (points_.empty()) return 0;
  const Point* first = &points_.front();
  for (const Point& point : points_) {
    if (point.time <= now - kWindow) first = &point;
  }
  if (now <= first->time) return 0;
  // A clock that was set in between makes nonsense of one value.
  return std::clamp(absl::FDivDuration(busy - first->busy, now - first->time), 0.0, 1.0);
}

}  // namespace opserve::server
