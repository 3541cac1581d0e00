#include "server/observability/operator_statistics.h"

#include <algorithm>
#include <atomic>

namespace opserve::server {
namespace {

// Threads are given places in turn.
size_t PlaceOfThread(size_t places) {
  static std::atomic<size_t> next = 0;
  thread_local const size_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number % places;
}

}  // namespace

OperatorStatistics::OperatorStatistics(size_t operators) : places_(new Place[kPlaces]) {
  for (size_t i = 0; i < kPlaces; ++i) {
    // Nobody else can have the lock yet; it satisfies the annotations.
    absl::MutexLock lock(&places_[i].mutex);
    places_[i].of_operator.resize(operators);
  }
}

void OperatorStatistics::Record(size_t op, bool is_ok, const StageClock& clock, absl::Time now) {
  // A request that never came to a queue was refused, not tried.
  if (!is_ok && clock.nanoseconds(Stage::kQueue) == 0) return;
  Place& place = places_[PlaceOfThread(kPlaces)];
  absl::MutexLock lock(&place.mutex);
  Totals& totals = place.of_operator[op];
  totals.last = std::max(totals.last, now);
  if (!is_ok) {
    ++totals.failures;
    totals.failure_nanoseconds += static_cast<uint64_t>(clock.total_nanoseconds());
    return;
  }
  ++totals.successes;
  for (int stage = 0; stage < kStages; ++stage) {
    totals.success_nanoseconds[stage] +=
        static_cast<uint64_t>(clock.nanoseconds(static_cast<Stage>(stage)));
  }
}

OperatorStatistics::Totals OperatorStatistics::Of(size_t op) const {
  Totals sum;
  for (size_t i = 0; i < kPlaces; ++i) {
    const Place& place = places_[i];
    absl::MutexLock lock(&place.mutex);
    const Totals& totals = place.of_operator[op];
    sum.successes += totals.successes;
    sum.failures += totals.failures;
    for (int stage = 0; stage < kStages; ++stage) {
      sum.success_nanoseconds[stage] += totals.success_nanoseconds[stage];
    }
    sum.failure_nanoseconds += totals.failure_nanoseconds;
    sum.last = std::max(sum.last, totals.last);
  }
  return sum;
}

}  // namespace opserve::server
