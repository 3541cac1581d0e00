// The choice of a device for a task that can run on any of them.

#include "server/schedule/policy/placement.h"

#include "gtest/gtest.h"

namespace opserve::server {
namespace {

constexpr absl::Duration kMs = absl::Milliseconds(1);

TEST(PlacementTest, SpreadsATenantsOwnWork) {
  // Ten small tasks of another tenant wait on the first; the second has one large one of its own.
  const DeviceLoad small{.lanes = 1, .queued = 10, .executing = 1};
  const DeviceLoad large{.lanes = 1, .queued = 1, .executing = 1, .own = 10 * kMs};
  EXPECT_TRUE(IsBetterPlace(small, large));
  EXPECT_FALSE(IsBetterPlace(large, small));
}

TEST(PlacementTest, ComparesLaneTimeNotTasks) {
  const DeviceLoad few{.lanes = 1, .queued = 1, .executing = 1, .own = 20 * kMs};
  const DeviceLoad many{.lanes = 1, .queued = 30, .executing = 1, .own = 19 * kMs};
  EXPECT_TRUE(IsBetterPlace(many, few));
}

TEST(PlacementTest, PrefersAFreeLane) {
  const DeviceLoad waiting{.lanes = 4, .queued = 1, .executing = 4};
  const DeviceLoad free{.lanes = 4, .queued = 0, .executing = 3, .own = 30 * kMs};
  EXPECT_TRUE(IsBetterPlace(free, waiting));
  EXPECT_FALSE(IsBetterPlace(waiting, free));
  // Of two with free lanes, the one with more of them, though the tenant has more work there.
  const DeviceLoad emptier{.lanes = 4, .queued = 0, .executing = 1, .own = 40 * kMs};
  EXPECT_TRUE(IsBetterPlace(emptier, free));
  // A task that waits although a lane is free cannot start.
  const DeviceLoad blocked{.lanes = 4, .queued = 1, .executing = 1};
  EXPECT_TRUE(IsBetterPlace(free, blocked));
}

TEST(PlacementTest, AvoidsDevicesThatDoNotOfferTheOperators) {
  const DeviceLoad idle{.offers = false, .lanes = 4};
  const DeviceLoad full{.lanes = 1, .queued = 100, .executing = 1, .own = 100 * kMs};
  EXPECT_TRUE(IsBetterPlace(full, idle));
  EXPECT_FALSE(IsBetterPlace(idle, full));
}

TEST(PlacementTest, BreaksTiesByTheShorterQueue) {
  const DeviceLoad longer{.lanes = 2, .queued = 5, .executing = 2, .own = kMs};
  const DeviceLoad shorter{.lanes = 2, .queued = 4, .executing = 2, .own = kMs};
  EXPECT_TRUE(IsBetterPlace(shorter, longer));
  EXPECT_FALSE(IsBetterPlace(longer, shorter));
  EXPECT_FALSE(IsBetterPlace(longer, longer));
}

}  // namespace
}  // namespace opserve::server
