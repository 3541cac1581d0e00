#include "server/net/descriptor_limit.h"

#include <sys/resource.h>

#include "gtest/gtest.h"

namespace opserve::server {
namespace {

TEST(DescriptorLimitTest, IsRaisedAsFarAsNeeded) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 100;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);

  EXPECT_EQ(RaiseDescriptorLimit(200), 200u);
  EXPECT_EQ(RaiseDescriptorLimit(150), 200u) << "never lowered";
  EXPECT_EQ(RaiseDescriptorLimit(uint64_t{before.rlim_max} + 1), before.rlim_max);
  rlimit after = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
  EXPECT_EQ(after.rlim_max, before.rlim_max);
  setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace opserve::server
