#include "server/schedule/policy/memory_zones.h"

#include "gtest/gtest.h"

namespace opserve::server {
namespace {

class MemoryZonesTest : public ::testing::Test {
 protected:
  void Set(uint32_t tenant, uint64_t reserved, uint64_t soft, uint64_t hard) {
    ASSERT_TRUE(zones_.SetLimits(tenant, {reserved, soft, hard}).ok());
  }

  MemoryZones zones_{1000};
};

TEST_F(MemoryZonesTest, WithoutLimitsEverythingIsFirstComeFirstServed) {
  EXPECT_TRUE(zones_.TryTake(1, 900));
  EXPECT_FALSE(zones_.TryTake(2, 200));
  EXPECT_TRUE(zones_.TryTake(2, 100));
  zones_.Give(1, 900);
  EXPECT_EQ(zones_.used(), 100u);
  EXPECT_EQ(zones_.used(2), 100u);
  EXPECT_TRUE(zones_.TryTake(2, 900));
}

TEST_F(MemoryZonesTest, WhatIsReservedIsNeverLent) {
  Set(1, 400, 1000, 1000);
  EXPECT_TRUE(zones_.TryTake(2, 600));
  EXPECT_FALSE(zones_.TryTake(2, 1));
  EXPECT_TRUE(zones_.TryTake(1, 400));
  EXPECT_FALSE(zones_.TryTake(1, 1)) << "the rest is lent";
  zones_.Give(2, 600);
  EXPECT_TRUE(zones_.TryTake(1, 600)) << "the rest is lent to it as well";
}

TEST_F(MemoryZonesTest, NobodyGetsMoreThanItsHardLimit) {
  Set(1, 0, 100, 300);
  EXPECT_TRUE(zones_.TryTake(1, 300));
  EXPECT_FALSE(zones_.TryTake(1, 1));
  zones_.Give(1, 100);
  EXPECT_TRUE(zones_.TryTake(1, 100));
  EXPECT_FALSE(zones_.CanEverFit(1, 301));
  EXPECT_TRUE(zones_.IsAboveHardLimit(1, 301));
  EXPECT_TRUE(zones_.CanEverFit(1, 300));
}

TEST_F(MemoryZonesTest, KnowsWhatCanNeverFitBesideReservations) {
  Set(1, 400, 1000, 1000);
  EXPECT_TRUE(zones_.CanEverFit(1, 1000));
  EXPECT_FALSE(zones_.CanEverFit(1, 1001));
  EXPECT_TRUE(zones_.CanEverFit(2, 600));
  EXPECT_FALSE(zones_.CanEverFit(2, 601));
  EXPECT_FALSE(zones_.IsAboveHardLimit(2, 601));
}

TEST_F(MemoryZonesTest, AboveTheSoftLimitOnlyWhatNobodyBelowWaitsFor) {
  Set(1, 0, 200, 1000);
  Set(2, 0, 500, 1000);
  EXPECT_TRUE(zones_.TryTake(3, 400));
  EXPECT_TRUE(zones_.TryTake(1, 200));
  EXPECT_TRUE(zones_.TryTake(1, 100)) << "nobody waits";
  EXPECT_FALSE(zones_.TryTake(2, 500));
  zones_.Wait(2, 500);
  EXPECT_FALSE(zones_.TryTake(1, 100)) << "above its soft limit, and somebody waits";
  EXPECT_TRUE(zones_.TryTake(4, 100)) << "within";
  zones_.StopWaiting(2);
  EXPECT_TRUE(zones_.TryTake(1, 100));
}

TEST_F(MemoryZonesTest, TheFirstOfATenantCountsAsWithinItsSoftLimit) {
  Set(1, 0, 100, 1000);
  zones_.Wait(2, 1000);
  EXPECT_TRUE(zones_.TryTake(1, 300));
  EXPECT_FALSE(zones_.TryTake(1, 1));
}

TEST_F(MemoryZonesTest, TellsWhoFitsNowLongestWaitingFirst) {
  ASSERT_TRUE(zones_.TryTake(9, 1000));
  zones_.Wait(1, 600);
  zones_.Wait(2, 300);
  zones_.Wait(3, 200);
  EXPECT_EQ(zones_.NextThatFits(), std::nullopt);
  zones_.Give(9, 250);
  EXPECT_EQ(zones_.NextThatFits(), 3u) << "it needs least, and the others do not fit";
  zones_.Give(9, 450);
  EXPECT_EQ(zones_.NextThatFits(), 1u) << "it has waited longest";
  zones_.Tell(1);
  EXPECT_EQ(zones_.NextThatFits(), 3u) << "each is told once";
  zones_.Tell(3);
  EXPECT_EQ(zones_.NextThatFits(), 2u);
  zones_.Tell(2);
  EXPECT_EQ(zones_.NextThatFits(), std::nullopt);
  zones_.Wait(1, 600);
  EXPECT_EQ(zones_.NextThatFits(), 1u) << "it waits again, and has kept its turn";
}

TEST_F(MemoryZonesTest, WhoIsAtItsHardLimitWaitsForItselfAlone) {
  Set(1, 0, 300, 300);
  Set(2, 0, 100, 1000);
  ASSERT_TRUE(zones_.TryTake(1, 300));
  zones_.Wait(1, 100);
  EXPECT_TRUE(zones_.TryTake(2, 100));
  EXPECT_TRUE(zones_.TryTake(2, 100)) << "above soft: nobody waits for others' memory";
  EXPECT_EQ(zones_.NextThatFits(), std::nullopt);
  zones_.Give(1, 100);
  EXPECT_EQ(zones_.NextThatFits(), 1u);
}

TEST_F(MemoryZonesTest, SmallOnesPassALargeOneForAWhileOnly) {
  Set(3, 10, 1000, 1000);
  ASSERT_TRUE(zones_.TryTake(2, 600));
  zones_.Wait(1, 900);
  uint32_t passes = 0;
  while (zones_.TryTake(2, 1)) {
    zones_.Give(2, 1);
    ASSERT_LE(++passes, MemoryZones::kMostPasses);
  }
  EXPECT_EQ(passes, MemoryZones::kMostPasses);
  EXPECT_TRUE(zones_.TryTake(3, 10)) << "what is reserved is not held";
  EXPECT_FALSE(zones_.TryTake(3, 1));
  zones_.Give(2, 600);
  EXPECT_EQ(zones_.NextThatFits(), 1u);
  EXPECT_TRUE(zones_.TryTake(1, 900));
  zones_.StopWaiting(1);
  EXPECT_TRUE(zones_.TryTake(3, 1));
}

TEST_F(MemoryZonesTest, NothingIsHeldForWhatCanNeverBeServedAnyMore) {
  zones_.Wait(1, 900);
  Set(2, 500, 500, 500);
  zones_.Wait(1, 900);
  for (uint32_t i = 0; i <= MemoryZones::kMostPasses; ++i) {
    EXPECT_TRUE(zones_.TryTake(3, 1));
    zones_.Give(3, 1);
  }
  EXPECT_EQ(zones_.NextThatFits(), std::nullopt);
  Set(2, 0, 500, 500);
  EXPECT_EQ(zones_.NextThatFits(), 1u) << "limits have changed again";
}

TEST_F(MemoryZonesTest, RefusesLimitsThatCannotBeKept) {
  Set(1, 600, 600, 600);
  EXPECT_EQ(zones_.SetLimits(2, {401, 500, 600}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(zones_.SetLimits(2, {10, 9, 600}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(zones_.SetLimits(2, {10, 20, 19}).code(), absl::StatusCode::kInvalidArgument);
  Set(2, 400, 400, 400);
  Set(1, 500, 600, 600);
  EXPECT_TRUE(zones_.TryTake(3, 100));
  EXPECT_FALSE(zones_.TryTake(3, 1));
}

TEST_F(MemoryZonesTest, AReservationThatGrowsIntoWhatIsLentIsGoodOnceThatIsBack) {
  ASSERT_TRUE(zones_.TryTake(1, 800));
  Set(2, 500, 500, 500);
  EXPECT_TRUE(zones_.TryTake(2, 200));
  EXPECT_FALSE(zones_.TryTake(2, 300));
  EXPECT_FALSE(zones_.TryTake(3, 1));
  zones_.Give(1, 300);
  EXPECT_TRUE(zones_.TryTake(2, 300));
  EXPECT_EQ(zones_.used(), 1000u);
}

TEST_F(MemoryZonesTest, ForgetsIdleTenants) {
  Set(1, 500, 500, 500);
  ASSERT_TRUE(zones_.TryTake(1, 1));
  EXPECT_FALSE(zones_.Forget(1));
  zones_.Give(1, 1);
  EXPECT_TRUE(zones_.Forget(1));
  EXPECT_TRUE(zones_.TryTake(2, 1000)) << "nothing is reserved any more";
}

}  // namespace
}  // namespace opserve::server
