#include "client/cli/text/latency_histogram.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/seed.h"

namespace opserve::cli {
namespace {

TEST(LatencyHistogramTest, PercentilesAreWithinOnePercentOfTheExactOnes) {
  std::mt19937_64 random(TestSeed(1));
  std::lognormal_distribution<double> usual(std::log(300e3), 1.5);  // around 300 us
  std::uniform_real_distribution<double> over_all_sizes(0, 18 * std::log(10.0));
  struct Case {
    const char* name;
    std::function<double()> draw;
  };
  const Case kCases[] = {
      {"usual", [&] { return usual(random); }},
      {"1 ns to 31 years", [&] { return std::exp(over_all_sizes(random)); }},
      {"two kinds", [&] { return random() % 100 == 0 ? 5e9 : 1e5 + random() % 1000; }},
      {"small", [&] { return static_cast<double>(random() % 200); }},
  };
  for (const Case& c : kCases) {
    LatencyHistogram histogram;
    std::vector<int64_t> exact(20'000);
    for (int64_t& ns : exact) {
      ns = static_cast<int64_t>(c.draw());
      histogram.Record(absl::Nanoseconds(ns));
    }
    std::sort(exact.begin(), exact.end());
    EXPECT_EQ(histogram.count(), exact.size());
    EXPECT_EQ(histogram.min(), absl::Nanoseconds(exact.front()));
    EXPECT_EQ(histogram.max(), absl::Nanoseconds(exact.back()));
    for (const double percent : {0.01, 1.0, 10.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0}) {
      const auto rank = static_cast<size_t>(std::ceil(percent * exact.size() / 100));
      const auto expected = static_cast<double>(exact[rank - 1]);
      const auto found =
          static_cast<double>(absl::ToInt64Nanoseconds(histogram.Percentile(percent)));
      EXPECT_NEAR(found, expected, 0.01 * expected) << c.name << ", percentile " << percent;
    }
  }
}

TEST(LatencyHistogramTest, OneLatencyIsEveryPercentileExactly) {
  const absl::Duration latencies[] = {absl::ZeroDuration(), absl::Nanoseconds(255),
                                      absl::Nanoseconds(257), absl::Microseconds(1234),
                                      absl::Nanoseconds(INT64_MAX)};
  for (const absl::Duration latency : latencies) {
    LatencyHistogram histogram;
    histogram.Record(latency);
    for (const double percent : {0.0, 50.0, 99.9, 100.0}) {
      EXPECT_EQ(histogram.Percentile(percent), latency);
    }
  }
}

TEST(LatencyHistogramTest, WhatItCannotHoldBecomesTheNearestThatItCan) {
  LatencyHistogram histogram;
  histogram.Record(absl::Seconds(-1));
  EXPECT_EQ(histogram.max(), absl::ZeroDuration());
  histogram.Record(absl::InfiniteDuration());
  EXPECT_EQ(histogram.max(), absl::Nanoseconds(INT64_MAX));
}

TEST(LatencyHistogramTest, NothingRecordedIsZero) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.min(), absl::ZeroDuration());
  EXPECT_EQ(histogram.max(), absl::ZeroDuration());
  EXPECT_EQ(histogram.Percentile(50), absl::ZeroDuration());
}

}  // namespace
}  // namespace opserve::cli
