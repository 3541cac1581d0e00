#include "server/program/interval_placement.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/sanitized.h"
#include "tests/seed.h"

namespace opserve::server {
namespace {

using Intervals = std::vector<Interval>;

uint64_t Aligned(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// The largest sum of bytes at one step: no placement takes less.
uint64_t LowerBound(const Intervals& intervals) {
  std::map<uint32_t, int64_t> changes;
  for (const Interval& interval : intervals) {
    changes[interval.first] += static_cast<int64_t>(interval.bytes);
    changes[interval.last + 1] -= static_cast<int64_t>(interval.bytes);
  }
  int64_t now = 0;
  int64_t most = 0;
  for (const auto& [step, change] : changes) most = std::max(most, now += change);
  return static_cast<uint64_t>(most);
}

// Goes through the steps with the intervals of each in the order of their offsets.
void ExpectNoneOverlap(const Intervals& intervals, const std::vector<uint64_t>& offsets) {
  std::map<uint32_t, std::vector<size_t>> begins;
  std::map<uint32_t, std::vector<size_t>> ends;  // one step after the last
  for (size_t i = 0; i < intervals.size(); ++i) {
    begins[intervals[i].first].push_back(i);
    ends[intervals[i].last + 1].push_back(i);
    begins[intervals[i].last + 1];
  }
  std::map<uint64_t, size_t> living;  // by offset
  const auto end_of = [&](size_t i) { return offsets[i] + intervals[i].bytes; };
  for (const auto& [step, begun] : begins) {
    for (const size_t i : ends[step]) living.erase(offsets[i]);
    for (const size_t i : begun) {
      const auto [here, is_new] = living.emplace(offsets[i], i);
      ASSERT_TRUE(is_new) << "two intervals at " << offsets[i];
      const auto next = std::next(here);
      ASSERT_TRUE(next == living.end() || end_of(i) <= next->first) << "step " << step;
      ASSERT_TRUE(here == living.begin() || end_of(std::prev(here)->second) <= offsets[i])
          << "step " << step;
    }
  }
}

// Bytes taken as a multiple of the lower bound; checks the places.
double PlaceAndCheck(const Intervals& intervals) {
  std::vector<uint64_t> offsets(intervals.size());
  const uint64_t total = PlaceIntervals(intervals, absl::MakeSpan(offsets));
  ExpectNoneOverlap(intervals, offsets);
  uint64_t end = 0;
  for (size_t i = 0; i < intervals.size(); ++i) {
    EXPECT_EQ(offsets[i] % 64, 0u);
    end = std::max(end, offsets[i] + intervals[i].bytes);
  }
  EXPECT_EQ(total, end);
  return static_cast<double>(total) / static_cast<double>(LowerBound(intervals));
}

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  uint32_t Below(uint32_t end) {
    return std::uniform_int_distribution<uint32_t>(0, end - 1)(random_);
  }

  // Of any size and any length, mostly short.
  Intervals AnyGraph(uint32_t nodes) {
    Intervals intervals;
    for (uint32_t i = 0; i < nodes; ++i) {
      const uint32_t length = Below(3) > 0 ? Below(4) : Below(nodes);
      const uint64_t bytes = uint64_t{1} << Below(20);
      intervals.push_back({Aligned(bytes + Below(static_cast<uint32_t>(bytes))), i, i + length});
    }
    return intervals;
  }

  // A forward pass whose outputs live until the backward pass mirrors them, or for a few steps, of
  // sizes that come again with each layer: as the graphs of models are.
  Intervals TrainingStep(uint32_t nodes) {
    const uint64_t sizes[] = {64, 192, 64 << 10, 1 << 20, 3 << 20, 4 << 20, 100 << 20};
    const uint32_t weights[] = {10, 5, 25, 35, 10, 14, 1};
    std::discrete_distribution<size_t> size(std::begin(weights), std::end(weights));
    Intervals intervals;
    for (uint32_t i = 0; i < nodes; ++i) {
      const bool is_saved = i < nodes / 2 && Below(2) == 0;
      const uint32_t last = is_saved ? nodes - 1 - i : i + 1 + Below(4);
      intervals.push_back({sizes[size(random_)], i, last});
    }
    return intervals;
  }

 private:
  std::mt19937 random_;
};

TEST(PlaceIntervalsTest, NothingTakesNothing) { EXPECT_EQ(PlaceIntervals({}, {}), 0u); }

TEST(PlaceIntervalsTest, NeighboursInTimeDoNotShareAndOthersDo) {
  const Intervals intervals = {{64, 0, 1}, {64, 1, 2}, {64, 2, 3}};

  EXPECT_EQ(PlaceAndCheck(intervals), 1.0);
}

TEST(PlaceIntervalsTest, RandomGraphsTakeLittleMoreThanTheyMust) {
  constexpr int kGraphs = kIsSanitized ? 500 : 10'000;
  Generator generator(TestSeed(20261124));
  std::vector<double> ratios;
  for (int i = 0; i < kGraphs; ++i) {
    ratios.push_back(PlaceAndCheck(generator.AnyGraph(2 + generator.Below(200))));
  }
  std::sort(ratios.begin(), ratios.end());
  EXPECT_LE(ratios[kGraphs / 2], 1.05);
  EXPECT_LE(ratios[kGraphs * 99 / 100], 1.25);
}

TEST(PlaceIntervalsTest, TrainingStepsOfAnyLengthTakeLittleMoreThanTheyMust) {
  Generator generator(TestSeed(7));
  for (const uint32_t nodes : {300u, 1000u, 2048u, 2049u, 4000u, 10'000u}) {
    EXPECT_LE(PlaceAndCheck(generator.TrainingStep(nodes)), 1.10) << nodes;
    EXPECT_LE(PlaceAndCheck(generator.AnyGraph(nodes)), 1.25) << nodes;
  }
}

}  // namespace
}  // namespace opserve::server
