// W9 and W13 of server/device/README.md: many threads at once.
#include <atomic>
#include <cstring>
#include <random>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tests/await.h"
#include "tests/sanitized.h"
#include "tests/seed.h"
#include "tests/unit/server/memory_pool_fixture.h"

namespace opserve::server {
namespace {

using Scrub = DeviceMemoryPool::Scrub;
using MemoryPoolStressTest = MemoryPoolFixture;

// Sanitizers and one mutex among sixteen threads make it slow.
constexpr int kOperations = kIsSanitized ? 100'000 : 1'000'000;
constexpr int kThreads = 16;

TEST_F(MemoryPoolStressTest, WhileOneStreamsMemoryGrowsOthersAreServedAndGrowToo) {
  CreatePool({.region_bytes = kMiB, .scrub = Scrub::kNever});
  { DeviceBuffer retired = Lend(100 * kKiB, stream(1)), idle = Lend(4 * kMiB, nullptr); }
  absl::Notification is_growing, may_end;
  std::atomic<bool> is_first = true;
  ReplacedMalloc malloc([&](void** data, size_t bytes) {
    if (is_first.exchange(false)) {
      is_growing.Notify();
      may_end.WaitForNotification();
    }
    return ReplacedMalloc::Real(data, bytes);
  });
  std::thread slow([this] {
    BindThisThread();
    EXPECT_EQ(OutcomeOf(8 * kMiB, stream(0)), Pool::kGrow);
  });
  is_growing.WaitForNotification();

  EXPECT_EQ(OutcomeOf(100 * kKiB, stream(1)), Pool::kHit);
  EXPECT_EQ(OutcomeOf(4 * kMiB, stream(2)), Pool::kCrossStream);
  EXPECT_EQ(OutcomeOf(8 * kMiB, stream(3)), Pool::kGrow);
  pool().StreamIsIdle(stream(3));
  EXPECT_GT(pool().Trim(), 0u);
  EXPECT_GT(pool().snapshot().regions.size(), 0u);

  may_end.Notify();
  slow.join();
}

TEST_F(MemoryPoolStressTest, ConcurrentGrowthNeverTakesMoreThanTheLimit) {
  constexpr uint64_t kLimit = 8 * kMiB;
  CreatePool({.max_bytes = kLimit, .region_bytes = kMiB, .scrub = Scrub::kNever});
  absl::Notification may_end;
  std::atomic<int> growing = 0;
  ReplacedMalloc malloc([&](void** data, size_t bytes) {
    ++growing;
    may_end.WaitForNotification();
    return ReplacedMalloc::Real(data, bytes);
  });
  // Three fit: of each other's growth they see nothing but what it counts against the limit.
  std::atomic<int> served = 0, refused = 0;
  std::vector<std::thread> threads;
  std::vector<DeviceBuffer> held(kStreams);
  for (int t = 0; t < kStreams; ++t) {
    threads.emplace_back([&, t] {
      BindThisThread();
      auto buffer = pool().Allocate({.bytes = 2 * kMiB, .stream = stream(t)});
      ++(buffer.ok() ? served : refused);
      if (buffer.ok()) held[t] = *std::move(buffer);
    });
  }
  EXPECT_TRUE(Await([&] { return growing + refused >= kStreams; }));
  EXPECT_EQ(growing, 3);
  may_end.Notify();
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(served, 3);
  EXPECT_LE(BytesTakenFromDevice(), kLimit);
}

// What a thread has lent, with its mark at both ends.
class Holdings {
 public:
  explicit Holdings(int thread) : mark_(static_cast<char>(thread + 1)) {}

  void Add(DeviceBuffer buffer) {
    char* const data = static_cast<char*>(buffer.data());
    data[0] = data[buffer.size() - 1] = mark_;
    held_.push_back(std::move(buffer));
  }
  void Drop(size_t index) {
    std::swap(held_[index], held_.back());
    const char* const data = static_cast<char*>(held_.back().data());
    // Two holders of one block would see each other's marks.
    EXPECT_EQ(data[0], mark_);
    EXPECT_EQ(data[held_.back().size() - 1], mark_);
    held_.pop_back();
  }
  size_t size() const { return held_.size(); }

 private:
  const char mark_;
  std::vector<DeviceBuffer> held_;
};

TEST_F(MemoryPoolStressTest, AMillionRandomOperationsWithFailuresEndWithNothingLentAndNothingLost) {
  const uint32_t seed = TestSeed();
  constexpr uint64_t kLimit = 6 * kMiB;
  constexpr int kFailEvery = 7;
  CreatePool({.max_bytes = kLimit,
              .floor_bytes = kMiB,
              .region_bytes = 64 * kKiB,
              .decay = absl::Milliseconds(1),
              .scrub = Scrub::kNever});
  std::atomic<uint64_t> mallocs = 0, over_limit = 0;
  ReplacedMalloc malloc([&](void** data, size_t bytes) {
    if (++mallocs % kFailEvery == 0) return 207001;
    const aclError code = ReplacedMalloc::Real(data, bytes);
    over_limit += BytesTakenFromDevice() > kLimit;
    return code;
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t, seed] {
      BindThisThread();
      std::mt19937 random(seed + t);
      aclrtStream const own = stream(t % kStreams);
      Holdings holdings(t);
      for (int i = 0; i < kOperations / kThreads; ++i) {
        const uint32_t choice = random() % 1000;
        if (choice < 50) {
          pool().StreamIsIdle(own);
        } else if (choice < 53) {
          pool().TrimDecayed(absl::Now());
        } else if (choice < 56) {
          pool().Trim();
        } else if (choice < 66) {
          while (holdings.size() > 0) holdings.Drop(0);
        } else if (choice < 500 && holdings.size() < 12) {
          DeviceMemoryPool::Allocation allocation;
          allocation.bytes = 1 + random() % (random() % 8 == 0 ? 400000 : 8000);
          allocation.stream = random() % 8 == 0 ? nullptr : own;
          if (random() % 64 == 0) allocation.wait_until = absl::Now() + absl::Milliseconds(1);
          auto buffer = pool().Allocate(allocation);
          if (buffer.ok()) holdings.Add(*std::move(buffer));
        } else if (holdings.size() > 0) {
          holdings.Drop(random() % holdings.size());
        }
      }
      while (holdings.size() > 0) holdings.Drop(0);
    });
  }
  for (std::thread& thread : threads) thread.join();

  auto statistics = pool().statistics();
  EXPECT_EQ(statistics.allocated_bytes, 0u);
  EXPECT_EQ(statistics.requested_bytes, 0u);
  EXPECT_EQ(statistics.waiting, 0u);
  EXPECT_EQ(statistics.reserved_bytes, statistics.idle_bytes + statistics.retired_bytes);
  EXPECT_GE(mallocs, 2 * kFailEvery);
  EXPECT_EQ(over_limit, 0u);
  for (int i = 0; i < kStreams; ++i) pool().StreamIsIdle(stream(i));
  pool().Trim();
  EXPECT_EQ(pool().statistics().reserved_bytes, 0u);
  EXPECT_EQ(BytesTakenFromDevice(), 0u);
}

}  // namespace
}  // namespace opserve::server
