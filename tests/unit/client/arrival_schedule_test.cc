#include "client/cli/bench/arrival_schedule.h"

#include <cmath>

#include "gtest/gtest.h"

namespace opserve::cli {
namespace {

TEST(ArrivalScheduleTest, IsAPoissonProcessOfTheRate) {
  constexpr int kArrivals = 100'000;
  for (const double rate : {0.5, 200.0, 1e6}) {
    ArrivalSchedule schedule(rate);
    const absl::Duration mean_gap = absl::Seconds(1 / rate);
    absl::Duration last;
    int long_gaps = 0;
    for (int i = 0; i < kArrivals; ++i) {
      const absl::Duration due = schedule.Next();
      ASSERT_GE(due, last);
      if (due - last > mean_gap) ++long_gaps;
      last = due;
    }
    EXPECT_NEAR(absl::FDivDuration(last, mean_gap), kArrivals, 0.01 * kArrivals);
    EXPECT_NEAR(long_gaps, kArrivals / std::exp(1), 0.01 * kArrivals);
  }
}

TEST(ArrivalScheduleTest, IsTheSameEachTime) {
  ArrivalSchedule one(100);
  ArrivalSchedule other(100);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(one.Next(), other.Next());
}

}  // namespace
}  // namespace opserve::cli
