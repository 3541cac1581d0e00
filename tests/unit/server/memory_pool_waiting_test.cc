// W11 of server/device/README.md: allocations that wait for memory which is lent to others.
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tests/unit/server/memory_pool_fixture.h"

namespace opserve::server {
namespace {

using ::testing::ElementsAre;
using Scrub = DeviceMemoryPool::Scrub;

constexpr size_t kAll = 3 * kMiB;  // more than half of the pool, so only one can have it

// A pool that gives kAll once.
class MemoryPoolWaitingTest : public MemoryPoolFixture {
 protected:
  void SetUp() override {
    MemoryPoolFixture::SetUp();
    CreatePool({.max_bytes = 4 * kMiB, .region_bytes = 4 * kMiB, .scrub = Scrub::kNever});
  }

  // An allocation that waits on a thread of its own.
  class Waiter {
   public:
    Waiter(Pool& pool, Pool::Allocation allocation)
        : thread_([this, &pool, allocation] {
            BindThisThread();
            result_ = pool.Allocate(allocation);
          }) {}
    absl::StatusOr<DeviceBuffer>& Join() {
      thread_.join();
      return result_;
    }

   private:
    absl::StatusOr<DeviceBuffer> result_;
    std::thread thread_;
  };

  Pool::Allocation AllWithin(absl::Duration timeout, aclrtStream stream) {
    return {.bytes = kAll, .stream = stream, .wait_until = absl::Now() + timeout};
  }
  Pool::Allocation AllForever(aclrtStream stream) {
    return {.bytes = kAll, .stream = stream, .wait_until = absl::InfiniteFuture()};
  }
  Pool::Allocation SmallForever(aclrtStream stream) {
    return {.bytes = 1000, .stream = stream, .wait_until = absl::InfiniteFuture()};
  }
};

TEST_F(MemoryPoolWaitingTest, MergesTrimsAndWaitsAreCounted) {
  const Pool::Statistics before = pool().statistics();
  DeviceBuffer first = Lend(kAll / 2, stream(0));
  DeviceBuffer second = Lend(kAll / 4, stream(0));
  Waiter waiter(pool(), AllForever(stream(1)));
  AwaitWaiting(1);
  first = DeviceBuffer();
  second = DeviceBuffer();  // they become one block, and one with what was never lent
  pool().StreamIsIdle(stream(0));
  absl::StatusOr<DeviceBuffer>& all = waiter.Join();
  ASSERT_TRUE(all.ok()) << all.status();
  *all = DeviceBuffer();
  pool().StreamIsIdle(stream(1));
  EXPECT_GT(pool().Trim(), 0u);
  EXPECT_EQ(pool().Trim(), 0u);  // gives nothing back, and counts for nothing

  const Pool::Statistics after = pool().statistics();
  EXPECT_EQ(before.merges_total + before.trims_total + before.waits_total, 0u);
  EXPECT_EQ(after.merges_total, 3u);  // the last with what the waiter left over
  EXPECT_EQ(after.trims_total, 1u);
  EXPECT_EQ(after.waits_total, 1u);
  EXPECT_GT(after.wait_time_total, absl::ZeroDuration());
}

TEST_F(MemoryPoolWaitingTest, AnAllocationWaitsUntilTheMemoryIsReleasedAndItsStreamIdle) {
  DeviceBuffer held = Lend(kAll, stream(0));
  void* const data = held.data();
  Waiter waiter(pool(), AllForever(stream(1)));
  AwaitWaiting(1);

  held = DeviceBuffer();
  EXPECT_EQ(pool().statistics().waiting, 1u);
  pool().StreamIsIdle(stream(0));

  auto& buffer = waiter.Join();
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ(buffer->data(), data);
  EXPECT_EQ(pool().statistics().waiting, 0u);
}

TEST_F(MemoryPoolWaitingTest, MemoryThatComesBackInPiecesIsPutTogether) {
  std::vector<DeviceBuffer> held;
  for (int i = 0; i < 3; ++i) held.push_back(Lend(kMiB, stream(i)));
  Waiter waiter(pool(), AllForever(stream(3)));
  AwaitWaiting(1);

  for (int i = 0; i < 3; ++i) {
    held[i] = DeviceBuffer();
    pool().StreamIsIdle(stream(i));
  }

  EXPECT_TRUE(waiter.Join().ok());
}

TEST_F(MemoryPoolWaitingTest, RegionsThatBecomeIdleAreGivenBackForOneThatNeedsALargerOne) {
  CreatePool({.max_bytes = 4 * kMiB, .region_bytes = kMiB, .scrub = Scrub::kNever});
  std::vector<DeviceBuffer> held;
  for (int i = 0; i < 3; ++i) held.push_back(Lend(kMiB, stream(i)));
  Waiter waiter(pool(), AllForever(stream(3)));
  AwaitWaiting(1);

  for (int i = 0; i < 3; ++i) {
    held[i] = DeviceBuffer();
    pool().StreamIsIdle(stream(i));
  }

  EXPECT_TRUE(waiter.Join().ok());
  EXPECT_EQ(pool().statistics().allocations[Pool::kRetry], 1u);
}

TEST_F(MemoryPoolWaitingTest, FirstComeFirstServed) {
  DeviceBuffer held = Lend(kAll, stream(0));
  absl::Mutex mutex;
  std::vector<int> order;
  std::vector<std::thread> threads;
  for (int i = 1; i <= 4; ++i) {
    threads.emplace_back([&, i] {
      BindThisThread();
      absl::StatusOr<DeviceBuffer> buffer = pool().Allocate(AllForever(stream(i)));
      EXPECT_TRUE(buffer.ok()) << buffer.status();
      {
        absl::MutexLock lock(&mutex);
        order.push_back(i);
      }
      buffer = DeviceBuffer();
      pool().StreamIsIdle(stream(i));
    });
    AwaitWaiting(i);
  }

  held = DeviceBuffer();
  pool().StreamIsIdle(stream(0));
  for (std::thread& thread : threads) thread.join();

  EXPECT_THAT(order, ElementsAre(1, 2, 3, 4));
}

TEST_F(MemoryPoolWaitingTest, OneThatWouldFitDoesNotOvertakeOneThatDoesNotYet) {
  DeviceBuffer held = Lend(2 * kMiB, stream(0));
  Waiter large(pool(), AllForever(stream(1)));
  AwaitWaiting(1);
  Waiter small(pool(), SmallForever(stream(2)));
  AwaitWaiting(2);

  held = DeviceBuffer();
  pool().StreamIsIdle(stream(0));

  EXPECT_TRUE(large.Join().ok());
  EXPECT_TRUE(small.Join().ok());
}

TEST_F(MemoryPoolWaitingTest, WhileOthersWaitAStreamMayStillUseWhatItRetiredItself) {
  DeviceBuffer held = Lend(kMiB, stream(0));
  { DeviceBuffer retired = Lend(kMiB, stream(2)); }
  Waiter waiter(pool(), AllForever(stream(1)));
  AwaitWaiting(1);

  auto own =
      pool().Allocate({.bytes = kMiB, .stream = stream(2), .wait_until = absl::InfiniteFuture()});

  EXPECT_TRUE(own.ok());
  EXPECT_EQ(pool().statistics().waiting, 1u);
  own = DeviceBuffer();
  held = DeviceBuffer();
  for (int i : {0, 2}) pool().StreamIsIdle(stream(i));
  EXPECT_TRUE(waiter.Join().ok());
}

TEST_F(MemoryPoolWaitingTest, WhileOthersWaitOneThatMayNotTakesWhatIsFreeAndNothingNew) {
  CreatePool({.max_bytes = 4 * kMiB, .region_bytes = kMiB, .scrub = Scrub::kNever});
  std::vector<DeviceBuffer> held;
  held.push_back(Lend(kMiB / 2, stream(0)));
  held.push_back(Lend(3 * kMiB / 2, stream(0)));
  Waiter waiter(pool(), AllForever(stream(1)));
  AwaitWaiting(1);

  EXPECT_EQ(OutcomeOf(kMiB / 4, stream(2)), Pool::kSplit);
  pool().StreamIsIdle(stream(2));
  EXPECT_EQ(StatusOf({.bytes = kMiB, .stream = stream(2)}).code(),
            absl::StatusCode::kResourceExhausted);

  held.clear();
  pool().StreamIsIdle(stream(0));
  EXPECT_TRUE(waiter.Join().ok());
  // It was the waiting that forbade it.
  EXPECT_TRUE(StatusOf({.bytes = kMiB / 2, .stream = stream(2)}).ok());
}

TEST_F(MemoryPoolWaitingTest, WaitingEndsAtItsDeadline) {
  DeviceBuffer held = Lend(kAll, stream(0));

  const absl::Status status = StatusOf(AllWithin(absl::Milliseconds(5), stream(1)));

  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pool().statistics().waiting, 0u);
  EXPECT_EQ(pool().statistics().allocations[Pool::kOutOfMemory], 1u);
}

TEST_F(MemoryPoolWaitingTest, TheNextOneIsServedWhenTheFirstGivesUp) {
  DeviceBuffer held = Lend(2 * kMiB, stream(0));
  std::atomic<bool> is_cancelled = false;
  auto first = AllForever(stream(1));
  first.is_cancelled = &is_cancelled;
  Waiter large(pool(), first);
  AwaitWaiting(1);
  Waiter small(pool(), SmallForever(stream(2)));  // fits now, but waits its turn
  AwaitWaiting(2);

  is_cancelled = true;
  pool().WakeWaiters();

  EXPECT_EQ(large.Join().status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(small.Join().ok());
}

TEST_F(MemoryPoolWaitingTest, OneThatIsNotTheFirstCanBeCancelledToo) {
  DeviceBuffer held = Lend(kAll, stream(0));
  std::atomic<bool> is_cancelled = false;
  Waiter first(pool(), AllForever(stream(1)));
  AwaitWaiting(1);
  auto allocation = AllForever(stream(2));
  allocation.is_cancelled = &is_cancelled;
  Waiter second(pool(), allocation);
  AwaitWaiting(2);

  is_cancelled = true;
  pool().WakeWaiters();

  EXPECT_EQ(second.Join().status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(pool().statistics().waiting, 1u);
  held = DeviceBuffer();
  pool().StreamIsIdle(stream(0));
  EXPECT_TRUE(first.Join().ok());
}

TEST_F(MemoryPoolWaitingTest, MemoryLentWithoutAStreamIsNotWaitedFor) {
  DeviceBuffer held = Lend(kAll, nullptr);

  EXPECT_EQ(StatusOf(AllForever(stream(0))).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(StatusOf(AllForever(nullptr)).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(MemoryPoolWaitingTest, AStreamDoesNotWaitForItsOwnMemory) {
  DeviceBuffer held = Lend(kAll, stream(0));

  EXPECT_EQ(StatusOf(AllForever(stream(0))).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(MemoryPoolWaitingTest, StreamsDoNotWaitForEachOther) {
  DeviceBuffer first = Lend(kMiB, stream(0)), second = Lend(2 * kMiB, stream(1));
  Waiter waiter(pool(), AllForever(stream(0)));
  AwaitWaiting(1);

  // It would close the circle: nobody would be left to release anything.
  EXPECT_EQ(StatusOf(AllForever(stream(1))).code(), absl::StatusCode::kResourceExhausted);

  second = DeviceBuffer();
  first = DeviceBuffer();
  for (int i : {0, 1}) pool().StreamIsIdle(stream(i));
  EXPECT_TRUE(waiter.Join().ok());
}

TEST_F(MemoryPoolWaitingTest, OneThatWaitsIsRefusedWhenNobodyIsLeftToReleaseAnything) {
  DeviceBuffer resident = Lend(kMiB, nullptr), held = Lend(kMiB, stream(0));
  Waiter first(pool(), AllForever(stream(1)));
  AwaitWaiting(1);
  Waiter second(pool(), SmallForever(stream(2)));
  AwaitWaiting(2);

  held = DeviceBuffer();
  pool().StreamIsIdle(stream(0));

  EXPECT_EQ(first.Join().status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(second.Join().ok());
}

TEST_F(MemoryPoolWaitingTest, AGrowthUnderWayIsWaitedForEvenIfItFails) {
  CreatePool({.max_bytes = 4 * kMiB, .region_bytes = kMiB, .scrub = Scrub::kNever});
  absl::Notification is_growing, may_end;
  std::atomic<bool> is_first = true;
  ReplacedMalloc malloc([&](void** data, size_t bytes) {
    if (!is_first.exchange(false)) return ReplacedMalloc::Real(data, bytes);
    is_growing.Notify();
    may_end.WaitForNotification();
    return 507899;
  });
  Waiter growing(pool(), {.bytes = kAll, .stream = stream(0)});
  is_growing.WaitForNotification();

  // What the other is taking counts against the limit.
  EXPECT_EQ(StatusOf({.bytes = kAll, .stream = stream(1)}).code(),
            absl::StatusCode::kResourceExhausted);
  Waiter waiter(pool(), AllForever(stream(1)));
  AwaitWaiting(1);
  may_end.Notify();

  EXPECT_EQ(growing.Join().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(waiter.Join().ok());
}

TEST_F(MemoryPoolWaitingTest, OneThatWaitsGetsNewMemoryWhenAllIsForgotten) {
  DeviceBuffer held = Lend(kAll, stream(0));
  void* const leaked = held.data();
  Waiter waiter(pool(), AllForever(stream(1)));
  AwaitWaiting(1);

  pool().ForgetAll();

  auto& buffer = waiter.Join();
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_NE(buffer->data(), leaked);
  // No reset has taken it here.
  EXPECT_EQ(TestAcl().aclrtFree(leaked), 0);
}

// Memory that its holder can do without serves an allocation, whether that may wait or not.
TEST_F(MemoryPoolWaitingTest, MemoryThatCanBeDoneWithoutComesBackFirst) {
  for (const absl::Time until : {absl::InfinitePast(), absl::InfiniteFuture()}) {
    CreatePool({.max_bytes = 4 * kMiB, .region_bytes = 4 * kMiB, .scrub = Scrub::kNever});
    DeviceBuffer spare;
    int asked = 0;
    pool().OnShortage([&] {
      ++asked;
      return std::exchange(spare, DeviceBuffer()).data() != nullptr;
    });
    spare = Lend(kAll, nullptr);
    EXPECT_EQ(asked, 0);
    auto lent = pool().Allocate({.bytes = kAll, .stream = stream(0), .wait_until = until});
    ASSERT_TRUE(lent.ok()) << lent.status();
    EXPECT_EQ(asked, 1);
    EXPECT_TRUE(absl::IsResourceExhausted(pool().Allocate({.bytes = kAll}).status()));
    EXPECT_EQ(asked, 2);
  }
}

// As it is for memory that was lent on the stream.
TEST_F(MemoryPoolWaitingTest, MemoryThatJoinedAStreamIsWaitedFor) {
  DeviceBuffer buffer = Lend(kAll, nullptr);
  EXPECT_TRUE(absl::IsResourceExhausted(pool().Allocate(AllForever(stream(1))).status()))
      << "it may never come back";
  pool().JoinStream(buffer, stream(0));
  Waiter waiter(pool(), AllForever(stream(1)));
  AwaitWaiting(1);
  buffer = DeviceBuffer();
  EXPECT_EQ(pool().statistics().waiting, 1u) << "the stream may still use it";
  pool().StreamIsIdle(stream(0));
  EXPECT_TRUE(waiter.Join().ok());
}

}  // namespace
}  // namespace opserve::server
