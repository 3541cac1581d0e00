// Waiting for what other threads and processes bring about.
#pragma once

#include <chrono>
#include <thread>

#include "gtest/gtest.h"

namespace opserve {

// Looks until `condition` holds, for a minute; whether it does. EXPECT_TRUE names the condition
// that did not come true.
template <typename Condition>
testing::AssertionResult Await(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return testing::AssertionFailure() << "not within a minute";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return testing::AssertionSuccess();
}

}  // namespace opserve
