// When the requests of an open loop are due.
#pragma once

#include <random>

#include "absl/time/time.h"

namespace opserve::cli {

// Arrivals of a Poisson process, as those of many independent users; the same with every run. Knows
// no clock. Not thread-safe.
class ArrivalSchedule {
 public:
  // `rate` is the mean number of requests per second, above 0.
  explicit ArrivalSchedule(double rate);

  // When the next request is due, counted from the start of the load; never before the one before.
  absl::Duration Next();

 private:
  std::mt19937_64 random_;
  std::exponential_distribution<double> gap_seconds_;
  absl::Duration last_;
};

}  // namespace opserve::cli
