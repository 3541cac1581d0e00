// Order inside a tenant, bounds, refusals, removal and expiry.

#include "server/schedule/policy/fair_queue.h"

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/schedule/policy/retry_pushback.h"
#include "tests/seed.h"
#include "tests/unit/server/error_detail.h"
#include "tests/unit/server/named_task.h"

namespace opserve::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using NamedQueue = FairQueue;

const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

absl::Time At(int seconds) { return kStart + absl::Seconds(seconds); }

NamedQueue::Entry EntryOf(std::string name, uint32_t tenant = 1) {
  return {.task = Named(std::move(name)), .tenant = tenant, .estimate = absl::Milliseconds(10)};
}

absl::Status Push(NamedQueue* queue, NamedQueue::Entry entry, int at = 0) {
  return queue->Push(&entry, At(at));
}

std::vector<std::string> NamesOf(const std::vector<NamedQueue::Entry>& entries) {
  std::vector<std::string> names;
  for (const NamedQueue::Entry& entry : entries) names.push_back(NameOf<std::string>(entry));
  return names;
}

// Runs everything that is eligible, one at a time, each for as long as was estimated.
std::vector<std::string> RunAll(NamedQueue* queue) {
  std::vector<std::string> names;
  while (queue->Next() != nullptr) {
    const NamedQueue::Started started = queue->PopNext();
    names.push_back(NameOf<std::string>(started.entry));
    queue->Ended(started.charge, started.entry.estimate);
  }
  return names;
}

TEST(FairQueueTest, InsideATenantPriorityThenDeadlineThenArrivalDecides) {
  NamedQueue queue({});
  struct Case {
    const char* name;
    Priority priority;
    int deadline;  // 0: none
  };
  for (const Case& c : {Case{"low, soon", Priority::kLow, 1},
                        {"normal, none", Priority::kNormal, 0},
                        {"normal, late", Priority::kNormal, 9},
                        {"normal, soon", Priority::kNormal, 2},
                        {"normal, soon, second", Priority::kNormal, 2},
                        {"high, none", Priority::kHigh, 0},
                        {"high, none, second", Priority::kHigh, 0}}) {
    NamedQueue::Entry entry = EntryOf(c.name);
    entry.priority = c.priority;
    if (c.deadline != 0) entry.deadline = At(c.deadline);
    ASSERT_TRUE(queue.Push(&entry, At(0)).ok());
  }
  EXPECT_THAT(RunAll(&queue),
              ElementsAre("high, none", "high, none, second", "normal, soon",
                          "normal, soon, second", "normal, late", "normal, none", "low, soon"));
}

TEST(FairQueueTest, TheWorkOfATenantIsBounded) {
  NamedQueue queue({.work_per_tenant = 100, .random = std::mt19937_64(7)});
  const auto entry_of = [](std::string name, uint32_t tenant, uint64_t work) {
    NamedQueue::Entry entry = EntryOf(std::move(name), tenant);
    entry.work = work;
    return entry;
  };
  ASSERT_TRUE(Push(&queue, entry_of("a", 1, 60)).ok());
  ASSERT_TRUE(Push(&queue, entry_of("b", 1, 40)).ok());
  ASSERT_TRUE(Push(&queue, entry_of("copies only", 1, 0)).ok());
  EXPECT_EQ(queue.queued_work(1), 100u);

  for (const uint64_t work : {uint64_t{1}, UINT64_MAX}) {
    const absl::Status refused = Push(&queue, entry_of("c", 1, work));
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(ReasonOf(refused), "work_limit");
    EXPECT_GE(ErrorDetailOf(refused)->retry_pushback_ms(), 10);
  }
  EXPECT_TRUE(Push(&queue, entry_of("another tenant's", 2, 100)).ok());

  queue.Ended(queue.PopNext().charge, absl::Milliseconds(10));
  EXPECT_EQ(queue.queued_work(1), 40u);
  EXPECT_TRUE(Push(&queue, entry_of("c", 1, 60)).ok());
  queue.TakeAll();
  EXPECT_EQ(queue.queued_work(1), 0u);
}

TEST(FairQueueTest, PriorityDoesNotReachOverToOtherTenants) {
  NamedQueue queue({});
  for (const char* name : {"a1", "a2", "a3"}) {
    NamedQueue::Entry entry = EntryOf(name, 1);
    entry.priority = Priority::kHigh;
    ASSERT_TRUE(queue.Push(&entry, At(0)).ok());
  }
  for (const char* name : {"b1", "b2", "b3"}) {
    NamedQueue::Entry entry = EntryOf(name, 2);
    entry.priority = Priority::kLow;
    ASSERT_TRUE(queue.Push(&entry, At(0)).ok());
  }
  EXPECT_THAT(RunAll(&queue), ElementsAre("a1", "b1", "a2", "b2", "a3", "b3"));
}

TEST(FairQueueTest, RefusesBeyondItsBoundsAndLeavesTheEntry) {
  NamedQueue queue({.capacity = 3, .capacity_per_tenant = 2});
  EXPECT_TRUE(Push(&queue, EntryOf("a1", 1)).ok());
  EXPECT_TRUE(Push(&queue, EntryOf("a2", 1)).ok());
  NamedQueue::Entry third = EntryOf("a3", 1);
  const absl::Status tenant_full = queue.Push(&third, At(0));
  EXPECT_EQ(tenant_full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(tenant_full), "tenant_queue_full");
  EXPECT_EQ(NameOf<std::string>(third), "a3");
  EXPECT_TRUE(Push(&queue, EntryOf("b1", 2)).ok());
  const absl::Status full = Push(&queue, EntryOf("c1", 3));
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(full), "queue_full");
  EXPECT_EQ(queue.depth(), 3u);
  EXPECT_EQ(queue.depth(1), 2u);
  RunAll(&queue);
  EXPECT_TRUE(Push(&queue, EntryOf("c1", 3)).ok());
}

TEST(FairQueueTest, PushbackGrowsWithTheQueueWithinItsBounds) {
  int64_t last = 0;
  std::map<std::string, int64_t> at_bound;
  for (const int length : {1, 2, 5, 20, 100, 1000, 4000}) {
    for (const bool is_tenant_full : {true, false}) {
      const auto limit = static_cast<size_t>(length);
      NamedQueue queue({.capacity = is_tenant_full ? limit + 1 : limit,
                        .capacity_per_tenant = limit,
                        .lanes = 2,
                        .random = std::mt19937_64(7)});
      for (int i = 0; i < length; ++i) ASSERT_TRUE(Push(&queue, EntryOf("x", 1)).ok());
      const absl::Status refused = Push(&queue, EntryOf("y", is_tenant_full ? 1 : 2));
      const int64_t pushback = ErrorDetailOf(refused)->retry_pushback_ms();
      EXPECT_GE(pushback, 10);
      EXPECT_LE(pushback, 10'000);
      EXPECT_GE(pushback, last) << "length " << length;
      last = pushback;
    }
  }
  EXPECT_GT(last, 8'000);
}

TEST(PushbackTest, IsSpreadByTenPercentAndBounded) {
  const uint32_t seed = TestSeed(1);
  struct Case {
    absl::Duration drain;
    double least, most;
  };
  for (const Case& c : {Case{absl::ZeroDuration(), 10, 12.3},
                        {absl::Milliseconds(11), 10, 12.3},
                        {absl::Milliseconds(100), 90, 110},
                        {absl::Seconds(3), 2700, 3300},
                        {absl::Hours(1), 8180, 10'000},
                        {absl::InfiniteDuration(), 8180, 10'000}}) {
    std::mt19937_64 random(seed);
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < 1000; ++i) {
      const int64_t value = PushbackMilliseconds(c.drain, random);
      EXPECT_GE(value, c.least) << c.drain;
      EXPECT_LE(value, c.most) << c.drain;
      least = std::min(least, value);
      most = std::max(most, value);
    }
    EXPECT_LT(least, most) << c.drain;
  }
  std::mt19937_64 one(5), same(5);
  EXPECT_EQ(PushbackMilliseconds(absl::Seconds(1), one),
            PushbackMilliseconds(absl::Seconds(1), same));
}

TEST(FairQueueTest, RemovesByKey) {
  NamedQueue queue({});
  const int a = 0, b = 0, unknown = 0;
  NamedQueue::Entry first = EntryOf("a");
  first.key = &a;
  NamedQueue::Entry second = EntryOf("b");
  second.key = &b;
  ASSERT_TRUE(Push(&queue, std::move(first)).ok());
  ASSERT_TRUE(Push(&queue, std::move(second)).ok());
  EXPECT_FALSE(queue.Remove(&unknown).has_value());
  EXPECT_EQ(NameOf<std::string>(*queue.Remove(&a)), "a");
  EXPECT_FALSE(queue.Remove(&a).has_value());
  EXPECT_THAT(RunAll(&queue), ElementsAre("b"));
  EXPECT_FALSE(queue.Remove(&b).has_value());
}

TEST(FairQueueTest, TakesAllInOrderOfArrival) {
  NamedQueue queue({});
  for (const char* name : {"1", "2", "3", "4"}) {
    NamedQueue::Entry entry = EntryOf(name, name[0] % 2);
    entry.deadline = At('9' - name[0]);
    ASSERT_TRUE(queue.Push(&entry, At(0)).ok());
  }
  EXPECT_THAT(NamesOf(queue.TakeAll()), ElementsAre("1", "2", "3", "4"));
  EXPECT_EQ(queue.depth(), 0u);
  EXPECT_EQ(queue.Next(), nullptr);
}

TEST(FairQueueTest, HandsOutWhatExpired) {
  NamedQueue queue({});
  for (const int deadline : {5, 3, 7, 0}) {
    NamedQueue::Entry entry = EntryOf(std::to_string(deadline));
    if (deadline != 0) entry.deadline = At(deadline);
    ASSERT_TRUE(queue.Push(&entry, At(0)).ok());
  }
  EXPECT_EQ(queue.earliest_expiry(), At(3));
  EXPECT_THAT(queue.TakeExpired(At(3) - absl::Nanoseconds(1)), IsEmpty());
  EXPECT_THAT(NamesOf(queue.TakeExpired(At(5))), ElementsAre("3", "5"));
  EXPECT_EQ(queue.earliest_expiry(), At(7));
  EXPECT_THAT(RunAll(&queue), ElementsAre("7", "0"));
  EXPECT_EQ(queue.earliest_expiry(), absl::InfiniteFuture());
}

TEST(FairQueueTest, WhatWouldEndTooLateExpiresBeforeItsDeadline) {
  NamedQueue queue({});
  for (const int deadline : {9, 8}) {
    NamedQueue::Entry entry = EntryOf(std::to_string(deadline));
    entry.deadline = At(deadline);
    if (deadline == 9) entry.expiry = At(4);
    ASSERT_TRUE(queue.Push(&entry, At(0)).ok());
  }
  EXPECT_THAT(NamesOf(queue.TakeExpired(At(4))), ElementsAre("9"));
  EXPECT_THAT(NamesOf(queue.TakeExpired(At(8))), ElementsAre("8"));
}

TEST(FairQueueTest, KnowsTheOldestArrivalAndWhatATenantHasQueued) {
  NamedQueue queue({});
  EXPECT_EQ(queue.oldest_arrival(), absl::InfiniteFuture());
  ASSERT_TRUE(Push(&queue, EntryOf("a", 1), 1).ok());
  ASSERT_TRUE(Push(&queue, EntryOf("b", 1), 2).ok());
  ASSERT_TRUE(Push(&queue, EntryOf("c", 2), 3).ok());
  EXPECT_EQ(queue.oldest_arrival(), At(1));
  EXPECT_EQ(queue.queued_time(1), absl::Milliseconds(20));
  queue.PopNext();
  EXPECT_EQ(queue.oldest_arrival(), At(2));
  EXPECT_EQ(queue.queued_time(1), absl::Milliseconds(10));
  EXPECT_EQ(queue.queued_time(3), absl::ZeroDuration());
}

TEST(FairQueueTest, PassesAParkedTenantOver) {
  NamedQueue queue({});
  for (const char* name : {"a1", "a2"}) ASSERT_TRUE(Push(&queue, EntryOf(name, 1)).ok());
  ASSERT_TRUE(Push(&queue, EntryOf("b1", 2)).ok());
  queue.Park(1);
  EXPECT_THAT(RunAll(&queue), ElementsAre("b1"));
  ASSERT_TRUE(Push(&queue, EntryOf("a3", 1)).ok());
  EXPECT_EQ(queue.Next(), nullptr);
  queue.Unpark(1);
  EXPECT_THAT(RunAll(&queue), ElementsAre("a1", "a2", "a3"));
}

TEST(FairQueueTest, ForgetsIdleTenantsOnly) {
  NamedQueue queue({});
  ASSERT_TRUE(queue.SetWeight(1, 5).ok());
  ASSERT_TRUE(Push(&queue, EntryOf("a", 1)).ok());
  ASSERT_TRUE(Push(&queue, EntryOf("b", 2)).ok());
  EXPECT_FALSE(queue.Forget(1)) << "it waits";
  const NamedQueue::Started started = queue.PopNext();
  EXPECT_FALSE(queue.Forget(1)) << "it runs";
  queue.Ended(started.charge, absl::Seconds(1));
  EXPECT_FALSE(queue.Forget(1)) << "it is ahead of the other";
  RunAll(&queue);
  EXPECT_TRUE(queue.Forget(1));
  EXPECT_TRUE(queue.Forget(2));
  EXPECT_TRUE(queue.Forget(3)) << "never seen";
  EXPECT_EQ(queue.known_tenants(), 0u);
}

TEST(FairQueueTest, ChecksWeights) {
  NamedQueue queue({});
  EXPECT_EQ(queue.SetWeight(1, 0).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(queue.SetWeight(1, 1001).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(queue.SetWeight(1, 1).ok());
  EXPECT_TRUE(queue.SetWeight(1, 1000).ok());
}

}  // namespace
}  // namespace opserve::server
