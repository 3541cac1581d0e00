// How often each operator was run and where the time went, in totals that belong together: every
// look at them has all of a request or nothing of it. (Metrics are single values, each true for
// itself; clients that divide one by another want these.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/observability/stage_clock.h"

namespace opserve::server {

// Thread-safe. Threads that record have places of their own, so that they do not wait for each
// other; a reader adds up all places in turn.
class OperatorStatistics {
 public:
  struct Totals {
    uint64_t successes = 0;
    uint64_t failures = 0;  // of requests that had got into a device's queue
    std::array<uint64_t, kStages> success_nanoseconds = {};  // by stage
    uint64_t failure_nanoseconds = 0;
    absl::Time last = absl::UnixEpoch();  // when a request ended last
  };

  explicit OperatorStatistics(size_t operators);

  // Counts one request of one invocation. `op`: the operator's position.
  void Record(size_t op, bool is_ok, const StageClock& clock, absl::Time now);

  // Since the start.
  Totals Of(size_t op) const;

 private:
  static constexpr size_t kPlaces = 16;

  struct alignas(64) Place {
    mutable absl::Mutex mutex;
    std::vector<Totals> of_operator ABSL_GUARDED_BY(mutex);
  };

  const std::unique_ptr<Place[]> places_;
};

}  // namespace opserve::server
