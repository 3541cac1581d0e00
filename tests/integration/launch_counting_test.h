// For tests that ask how many kernels requests have launched.
#pragma once

#include <cstdint>

#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/unit/server/acl_environment.h"

namespace opserve::server {

// Clears injected faults after each test.
class LaunchCountingTest : public ::testing::Test {
 protected:
  void TearDown() override { ClearFaults(); }

  // Remembers how many kernels have been launched. A daemon is there.
  void CountLaunches() { launches_ = HostCount(OPSERVE_HOST_LAUNCHES); }
  int64_t Launches() const { return HostCount(OPSERVE_HOST_LAUNCHES) - launches_; }
  void AwaitLaunches(int64_t launches) const {
    EXPECT_TRUE(Await([&] { return Launches() >= launches; }));
  }

 private:
  int64_t launches_ = 0;
};

}  // namespace opserve::server
