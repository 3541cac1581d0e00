#include "server/identity/token_bucket.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace opserve::server {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);

TEST(TokenBucketTest, AllowsTheBurstThenTheRate) {
  TokenBucket bucket(/*rate=*/10, /*burst=*/5);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(bucket.TryTake(1, kNow), std::nullopt);
  EXPECT_EQ(bucket.TryTake(1, kNow), absl::Milliseconds(100));
  EXPECT_EQ(bucket.TryTake(1, kNow + absl::Milliseconds(40)), absl::Milliseconds(60));
  EXPECT_EQ(bucket.TryTake(1, kNow + absl::Milliseconds(100)), std::nullopt);
  EXPECT_EQ(bucket.TryTake(1, kNow + absl::Milliseconds(100)), absl::Milliseconds(100));
}

TEST(TokenBucketTest, SucceedsAfterTheTimeItSays) {
  TokenBucket bucket(/*rate=*/3e9, /*burst=*/1e9);
  absl::Time now = kNow;
  double taken = 0;
  for (int i = 0; i < 1000; ++i) {
    const double amount = 1e6 * (1 + i % 900);
    if (const auto wait = bucket.TryTake(amount, now)) {
      now += *wait;
      ASSERT_EQ(bucket.TryTake(amount, now), std::nullopt);
    }
    taken += amount;
  }
  EXPECT_NEAR(taken, 1e9 + 3e9 * absl::ToDoubleSeconds(now - kNow), 1e6);
}

TEST(TokenBucketTest, NeverHoldsMoreThanTheBurst) {
  TokenBucket bucket(/*rate=*/10, /*burst=*/5);
  EXPECT_EQ(bucket.TryTake(1, kNow), std::nullopt);
  const absl::Time later = kNow + absl::Hours(24);
  EXPECT_EQ(bucket.TryTake(5, later), std::nullopt);
  EXPECT_EQ(bucket.TryTake(1, later), absl::Milliseconds(100));
}

TEST(TokenBucketTest, SaysThatMoreThanTheBurstIsNeverThere) {
  TokenBucket bucket(/*rate=*/10, /*burst=*/5);
  EXPECT_EQ(bucket.TryTake(5.1, kNow), absl::InfiniteDuration());
  EXPECT_EQ(bucket.TryTake(5, kNow), std::nullopt) << "that took nothing";
}

TEST(TokenBucketTest, AClockThatGoesBackGivesNothingAway) {
  TokenBucket bucket(/*rate=*/10, /*burst=*/5);
  EXPECT_EQ(bucket.TryTake(5, kNow), std::nullopt);
  EXPECT_EQ(bucket.TryTake(1, kNow - absl::Seconds(1)), absl::Milliseconds(1100));
}

TEST(TokenBucketTest, ThreadsTogetherGetTheBurst) {
  TokenBucket bucket(/*rate=*/1, /*burst=*/1000);
  std::atomic<int> taken = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) {
        if (!bucket.TryTake(1, kNow)) taken.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken.load(), 1000);
}

}  // namespace
}  // namespace opserve::server
