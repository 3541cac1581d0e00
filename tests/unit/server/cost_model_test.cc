#include "server/schedule/policy/cost_model.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace opserve::server {
namespace {

absl::Duration Us(double us) { return absl::Microseconds(1) * us; }

class CostModelTest : public ::testing::Test {
 protected:
  double EstimateUs(uint32_t op, uint32_t dtype, uint64_t bytes) const {
    return absl::ToDoubleMicroseconds(model_.EstimateFor(op, dtype, bytes).time);
  }

  CostModel model_{{.operators = 3, .dtypes = 2, .unknown = absl::Milliseconds(7)}};
};

TEST_F(CostModelTest, AnOperatorThatNeverRanHasTheDefault) {
  model_.Record(0, 0, 1024, Us(10));
  EXPECT_EQ(EstimateUs(1, 0, 1024), 7000);
  EXPECT_EQ(model_.EstimateFor(1, 0, 1024).samples, 0u);
}

TEST_F(CostModelTest, TheFirstSamplesAreAveragedThenTheNewestCountMost) {
  for (const double us : {10, 20, 30}) model_.Record(0, 0, 1500, Us(us));
  EXPECT_NEAR(EstimateUs(0, 0, 1500), 20, 0.01);
  EXPECT_EQ(model_.EstimateFor(0, 0, 1500).samples, 3u);
  for (int i = 0; i < 60; ++i) model_.Record(0, 0, 1500, Us(500));
  EXPECT_NEAR(EstimateUs(0, 0, 1500), 500, 1);
}

TEST_F(CostModelTest, SizesOfOnePowerOfTwoShareAnEstimate) {
  model_.Record(0, 0, 1024, Us(10));
  EXPECT_EQ(EstimateUs(0, 0, 2047), 10);
  EXPECT_EQ(model_.EstimateFor(0, 0, 2047).samples, 1u);
  EXPECT_EQ(model_.EstimateFor(0, 0, 2048).samples, 0u);
}

TEST_F(CostModelTest, UnseenSizesAreScaledFromTheNearestOfTheSameOperator) {
  model_.Record(0, 0, 1 << 10, Us(10));
  model_.Record(0, 0, 1 << 20, Us(1000));
  EXPECT_EQ(EstimateUs(0, 0, 1 << 12), 40);
  EXPECT_EQ(EstimateUs(0, 0, 1 << 9), 5);
  EXPECT_EQ(EstimateUs(0, 0, 1 << 19), 500);
  EXPECT_EQ(EstimateUs(0, 0, 1 << 22), 4000);
  EXPECT_EQ(EstimateUs(0, 1, 1 << 12), 40) << "of another type, for want of its own";
  model_.Record(0, 1, 1 << 13, Us(10));
  EXPECT_EQ(EstimateUs(0, 1, 1 << 12), 5);
}

TEST_F(CostModelTest, TakesAnySizeAndTime) {
  model_.Record(2, 1, 0, absl::ZeroDuration());
  model_.Record(2, 1, UINT64_MAX, absl::InfiniteDuration());
  EXPECT_EQ(EstimateUs(2, 1, 0), 0);
  EXPECT_GT(EstimateUs(2, 1, UINT64_MAX), 1e9);
}

TEST_F(CostModelTest, ThreadsLoseNoSample) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      for (int k = 0; k < 1000; ++k) model_.Record(0, 0, 64, Us(10));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(model_.EstimateFor(0, 0, 64).samples, 4000u);
  EXPECT_EQ(EstimateUs(0, 0, 64), 10);
}

TEST(DeadlineTest, IsRefusedOnlyIfTheTenantAloneCouldNotMakeIt) {
  struct Case {
    const char* name;
    double left_ms, own_ms;
    uint32_t samples;
    double queued_ms;
    uint32_t lanes;
    bool is_feasible;
  };
  for (const Case& c : {Case{"room", 100, 50, 8, 0, 1, true},
                        {"just", 50, 50, 8, 0, 1, true},
                        {"too long itself", 49, 50, 8, 0, 4, false},
                        {"few samples", 49, 50, 7, 0, 4, true},
                        {"behind its own", 100, 50, 8, 60, 1, false},
                        {"behind its own, on two lanes", 100, 50, 8, 60, 2, true},
                        {"passed", -1, 0, 8, 0, 1, false}}) {
    const absl::Time now = absl::FromUnixSeconds(5);
    EXPECT_EQ(IsDeadlineFeasible(now, now + Us(1000 * c.left_ms), {Us(1000 * c.own_ms), c.samples},
                                 Us(1000 * c.queued_ms), c.lanes),
              c.is_feasible)
        << c.name;
  }
}

TEST(DeadlineTest, ARequestMustStartItsCostBeforeItsDeadlineIfThatIsKnown) {
  const absl::Time deadline = absl::FromUnixSeconds(5);
  EXPECT_EQ(LatestStart(deadline, {Us(300), kSamplesForRefusal}), deadline - Us(300));
  EXPECT_EQ(LatestStart(deadline, {Us(300), kSamplesForRefusal - 1}), deadline);
  EXPECT_EQ(LatestStart(absl::InfiniteFuture(), {Us(300), kSamplesForRefusal}),
            absl::InfiniteFuture());
}

}  // namespace
}  // namespace opserve::server
