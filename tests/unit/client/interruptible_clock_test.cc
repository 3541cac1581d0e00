#include "client/cli/bench/interruptible_clock.h"

#include <csignal>
#include <thread>

#include "gtest/gtest.h"

namespace opserve::cli {
namespace {

TEST(InterruptibleClockTest, WaitsUntilItsTime) {
  InterruptibleClock clock;
  const absl::Duration due = clock.Now() + absl::Milliseconds(2);
  EXPECT_TRUE(clock.WaitUntil(due));
  EXPECT_GE(clock.Now(), due);
  EXPECT_TRUE(clock.WaitUntil(due));  // now in the past
}

TEST(InterruptibleClockTest, ASignalEndsAllWaiting) {
  for (const int signal : {SIGINT, SIGTERM}) {
    InterruptibleClock clock;
    std::thread waiter([&clock] { EXPECT_FALSE(clock.WaitUntil(clock.Now() + absl::Hours(1))); });
    ASSERT_EQ(std::raise(signal), 0);
    waiter.join();
    EXPECT_FALSE(clock.WaitUntil(absl::ZeroDuration()));
  }
}

TEST(InterruptibleClockTest, SoDoesTheProgram) {
  InterruptibleClock clock;
  clock.Interrupt();
  EXPECT_FALSE(clock.WaitUntil(clock.Now() + absl::Hours(1)));
}

TEST(InterruptibleClockTest, IgnoredSignalsStayIgnored) {
  const auto before = std::signal(SIGINT, SIG_IGN);
  {
    InterruptibleClock clock;
    ASSERT_EQ(std::raise(SIGINT), 0);
    EXPECT_TRUE(clock.WaitUntil(absl::ZeroDuration()));
  }
  std::signal(SIGINT, before);
}

TEST(InterruptibleClockDeathTest, TheSecondSignalAndThoseAfterItsTimeActAsWithoutIt) {
  EXPECT_EXIT(
      {
        InterruptibleClock clock;
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(
      {
        { InterruptibleClock clock; }
        std::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace opserve::cli
