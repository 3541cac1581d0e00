// What the fair queue and the memory zones do together.

#include "server/schedule/policy/dispatch_queue.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/observability/tenant_slot.h"
#include "tests/unit/server/named_task.h"

namespace opserve::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DispatchQueueTest : public ::testing::Test {
 protected:
  using Queue = DispatchQueue;

  absl::Status Push(std::string name, uint32_t tenant, uint64_t bytes,
                    absl::Time deadline = absl::InfiniteFuture()) {
    Queue::Entry entry{.task = Named(std::move(name)),
                       .tenant = tenant,
                       .deadline = deadline,
                       .estimate = absl::Milliseconds(10),
                       .device_bytes = bytes};
    return queue_.Push(&entry, now_);
  }
  // Starts all that can; they stay running.
  std::vector<std::string> StartAll() {
    std::vector<std::string> names;
    while (queue_.MayStart()) {
      Queue::Popped popped = queue_.Pop(now_);
      if (!popped.started) break;
      names.push_back(NameOf<std::string>(popped.started->entry));
      running_.push_back(std::move(*popped.started));
    }
    EXPECT_FALSE(queue_.MayStart()) << "it would be asked again and again";
    return names;
  }
  void End(const std::string& name) {
    const auto found = std::find_if(running_.begin(), running_.end(), [&](const auto& run) {
      return NameOf<std::string>(run.entry) == name;
    });
    ASSERT_NE(found, running_.end());
    queue_.Ended(found->lease, absl::Milliseconds(10));
    running_.erase(found);
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  Queue queue_{{}, 1000};
  std::vector<Queue::Started> running_;
};

TEST_F(DispatchQueueTest, ATenantWithoutRoomIsPassedOverUntilMemoryIsBack) {
  ASSERT_TRUE(Push("a1", 1, 700).ok());
  ASSERT_TRUE(Push("a2", 1, 700).ok());
  ASSERT_TRUE(Push("b1", 2, 100).ok());
  ASSERT_TRUE(Push("b2", 2, 100).ok());
  EXPECT_THAT(StartAll(), ElementsAre("a1", "b1", "b2"));
  End("b1");
  EXPECT_THAT(StartAll(), IsEmpty());
  End("a1");
  EXPECT_THAT(StartAll(), ElementsAre("a2"));
  EXPECT_EQ(queue_.memory().used(), 800u);
}

TEST_F(DispatchQueueTest, WaitsForItsOwnMemoryAtTheHardLimit) {
  ASSERT_TRUE(queue_.SetTenant(1, 1, {.reserved = 0, .soft = 100, .hard = 100}).ok());
  for (const char* name : {"a1", "a2", "a3"}) ASSERT_TRUE(Push(name, 1, 50).ok());
  EXPECT_THAT(StartAll(), ElementsAre("a1", "a2"));
  End("a2");
  EXPECT_THAT(StartAll(), ElementsAre("a3"));
}

TEST_F(DispatchQueueTest, RefusesWhatCanNeverFit) {
  ASSERT_TRUE(queue_.SetTenant(1, 1, {.reserved = 100, .soft = 200, .hard = 300}).ok());
  struct Case {
    uint32_t tenant;
    uint64_t bytes;
    const char* reason;
    const char* limit;
  };
  for (const Case& c :
       {Case{1, 301, "tenant_memory", "the tenant's limit of 300 (device_memory.hard_bytes)"},
        {2, 901, "device_memory", "of the daemon's 1000 (--workspace_max_bytes)"}}) {
    const absl::Status status = Push("x", c.tenant, c.bytes);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(ErrorDetailOf(status)->reason(), c.reason);
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(c.limit));
    EXPECT_EQ(ErrorDetailOf(status)->retry_pushback_ms(), -1);
  }
}

TEST_F(DispatchQueueTest, HandsOutWhatExpiredAndNeverStartsIt) {
  ASSERT_TRUE(Push("late", 1, 10, now_ + absl::Seconds(1)).ok());
  ASSERT_TRUE(Push("fine", 1, 10, now_ + absl::Seconds(3)).ok());
  now_ += absl::Seconds(1);
  Queue::Popped popped = queue_.Pop(now_);
  ASSERT_EQ(popped.expired.size(), 1u);
  EXPECT_EQ(NameOf<std::string>(popped.expired[0]), "late");
  ASSERT_TRUE(popped.started.has_value());
  EXPECT_EQ(NameOf<std::string>(popped.started->entry), "fine");
}

TEST_F(DispatchQueueTest, WhatComesBehindAnEntryWithoutRoomStartsWhenThatIsGone) {
  for (const bool expires : {true, false}) {
    SCOPED_TRACE(expires);
    ASSERT_TRUE(Push("holder", 1, 500).ok());
    ASSERT_THAT(StartAll(), ElementsAre("holder"));
    Queue::Entry large{.task = Named(std::string("large")),
                       .key = this,
                       .tenant = 2,
                       .deadline = now_ + absl::Seconds(1),
                       .device_bytes = 800};
    ASSERT_TRUE(queue_.Push(&large, now_).ok());
    ASSERT_TRUE(Push("small", 2, 300).ok());
    EXPECT_THAT(StartAll(), IsEmpty());
    if (expires) {
      now_ += absl::Seconds(1);
      EXPECT_EQ(queue_.TakeExpired(now_).size(), 1u);
    } else {
      EXPECT_TRUE(queue_.Remove(this).has_value());
    }
    EXPECT_THAT(StartAll(), ElementsAre("small"));
    End("holder");
    End("small");
  }
}

// It may be a step of the work that has the memory which the first entry waits for.
TEST_F(DispatchQueueTest, WhatNeedsNoMemoryPassesAnEntryThatWaitsForSome) {
  ASSERT_TRUE(Push("holder", 2, 500).ok());
  ASSERT_THAT(StartAll(), ElementsAre("holder"));
  ASSERT_TRUE(Push("large", 1, 800).ok());
  ASSERT_TRUE(Push("small", 1, 300).ok());
  EXPECT_THAT(StartAll(), IsEmpty());
  ASSERT_TRUE(Push("step 1", 1, 0).ok());
  ASSERT_TRUE(Push("step 2", 1, 0).ok());
  EXPECT_THAT(StartAll(), ElementsAre("step 1", "step 2"));
  // The turn for the memory is still the tenant's.
  EXPECT_TRUE(queue_.memory().waiting().contains(1));
  End("step 1");
  EXPECT_THAT(StartAll(), IsEmpty());
  ASSERT_TRUE(Push("step 3", 1, 0).ok());
  EXPECT_THAT(StartAll(), ElementsAre("step 3"));
  End("holder");
  EXPECT_THAT(StartAll(), ElementsAre("large"));
  End("large");
  EXPECT_THAT(StartAll(), ElementsAre("small"));
  EXPECT_THAT(queue_.memory().waiting(), IsEmpty());
}

TEST_F(DispatchQueueTest, StepsStartInTheirOrderWhenTheEntryThatWaitedIsGone) {
  ASSERT_TRUE(Push("holder", 2, 500).ok());
  ASSERT_THAT(StartAll(), ElementsAre("holder"));
  Queue::Entry large{
      .task = Named(std::string("large")), .key = this, .tenant = 1, .device_bytes = 800};
  ASSERT_TRUE(queue_.Push(&large, now_).ok());
  EXPECT_THAT(StartAll(), IsEmpty());
  ASSERT_TRUE(Push("step", 1, 0, now_ + absl::Seconds(9)).ok());
  ASSERT_TRUE(Push("small", 1, 300, now_ + absl::Seconds(5)).ok());
  EXPECT_TRUE(queue_.Remove(this).has_value());
  EXPECT_THAT(StartAll(), ElementsAre("small", "step"));
}

TEST_F(DispatchQueueTest, AnUrgentEntryIsTriedBeforeOneWithoutRoom) {
  ASSERT_TRUE(Push("holder", 1, 500).ok());
  ASSERT_TRUE(Push("large", 2, 800).ok());
  EXPECT_THAT(StartAll(), ElementsAre("holder"));
  ASSERT_TRUE(Push("urgent", 2, 10, now_ + absl::Seconds(1)).ok());
  EXPECT_THAT(StartAll(), ElementsAre("urgent"));
}

// Two queues get the same entries at random times: one starts those that find it empty at once, the
// other has them wait first. They must agree on everything that can be seen of them.
TEST(DispatchQueueStartTest, StartsAtOnceWhatPushAndPopWouldStart) {
  using Queue = DispatchQueue;
  std::mt19937_64 random(7);
  const auto below = [&random](uint64_t limit) { return random() % limit; };
  const FairQueueOptions options{.capacity_per_tenant = 3, .work_per_tenant = 100};
  Queue direct(options, 1000);
  Queue through_order(options, 1000);
  for (Queue* queue : {&direct, &through_order}) {
    ASSERT_TRUE(queue->SetTenant(1, 3, {.reserved = 100, .soft = 300, .hard = 500}).ok());
    queue->residents().SetLimit(2, 400);
  }
  absl::Time now = absl::FromUnixSeconds(1000);
  std::vector<std::pair<Queue::Started, Queue::Started>> running;
  int held = 0;
  const auto run = [&](std::optional<Queue::Started> a, std::optional<Queue::Started> b) {
    ASSERT_EQ(a.has_value(), b.has_value());
    if (!a) return;
    ASSERT_EQ(NameOf<std::string>(a->entry), NameOf<std::string>(b->entry));
    ASSERT_EQ(a->entry.arrival, b->entry.arrival);
    ASSERT_EQ(a->lease.charge.estimate, b->lease.charge.estimate);
    ASSERT_EQ(a->lease.is_held, b->lease.is_held);
    held += a->lease.is_held ? 1 : 0;
    running.emplace_back(std::move(*a), std::move(*b));
  };
  const auto pop = [&] {
    Queue::Popped a = direct.Pop(now);
    Queue::Popped b = through_order.Pop(now);
    ASSERT_EQ(a.expired.size(), b.expired.size());
    run(std::move(a.started), std::move(b.started));
  };
  int at_once = 0;
  for (int step = 0; step < 20'000; ++step) {
    now += absl::Microseconds(below(50));
    if (below(2) == 0 && !running.empty()) {
      const size_t ended = below(running.size());
      const absl::Duration took = absl::Microseconds(below(200));
      direct.Ended(running[ended].first.lease, took);
      through_order.Ended(running[ended].second.lease, took);
      running.erase(running.begin() + static_cast<ptrdiff_t>(ended));
      pop();
      continue;
    }
    Queue::Entry entry{
        .task = Named(std::to_string(step)),
        .tenant = static_cast<uint32_t>(below(4)),
        .deadline = below(4) == 0 ? now + absl::Microseconds(below(100)) : absl::InfiniteFuture(),
        .estimate = absl::Microseconds(below(100)),
        .work = below(110),
        .device_bytes = below(600)};
    entry.may_hold = below(2) == 0;
    entry.must_hold = below(4) == 0;
    if (below(4) == 0) entry.device_bytes = 0;
    Queue::Entry same{.task = Named(std::to_string(step)),
                      .tenant = entry.tenant,
                      .deadline = entry.deadline,
                      .estimate = entry.estimate,
                      .work = entry.work,
                      .device_bytes = entry.device_bytes};
    same.may_hold = entry.may_hold;
    same.must_hold = entry.must_hold;
    const bool was_empty = direct.depth() == 0;
    const absl::Status pushed = through_order.Push(&same, now);
    if (was_empty) {
      if (std::optional<Queue::Started> started = direct.TryStart(&entry, now)) {
        ++at_once;
        ASSERT_TRUE(pushed.ok()) << pushed;
        Queue::Popped popped = through_order.Pop(now);
        ASSERT_THAT(popped.expired, IsEmpty());
        run(std::move(started), std::move(popped.started));
        continue;
      }
    }
    ASSERT_EQ(direct.Push(&entry, now).message(), pushed.message());
    pop();
    ASSERT_EQ(direct.depth(), through_order.depth());
    ASSERT_EQ(direct.memory().used(), through_order.memory().used());
    ASSERT_EQ(direct.MayStart(), through_order.MayStart());
    for (uint32_t tenant = 0; tenant < 4; ++tenant) {
      ASSERT_EQ(direct.depth(tenant), through_order.depth(tenant));
      ASSERT_EQ(direct.Lag(tenant), through_order.Lag(tenant));
    }
  }
  EXPECT_GT(at_once, 1000);
  EXPECT_GT(held, 1000);
}

TEST_F(DispatchQueueTest, NobodyWaitsForMemoryAfterItsEntriesWereTaken) {
  ASSERT_TRUE(queue_.SetTenant(3, 1, {.reserved = 0, .soft = 100, .hard = 1000}).ok());
  ASSERT_TRUE(Push("holder", 1, 500).ok());
  ASSERT_TRUE(Push("large", 2, 800).ok());
  EXPECT_THAT(StartAll(), ElementsAre("holder"));
  EXPECT_EQ(queue_.TakeAll().size(), 1u);
  // Above its soft limit: only if nobody waits.
  ASSERT_TRUE(Push("c1", 3, 100).ok());
  ASSERT_TRUE(Push("c2", 3, 200).ok());
  EXPECT_THAT(StartAll(), ElementsAre("c1", "c2"));
}

TEST_F(DispatchQueueTest, HigherLimitsLetWhatWaitsStart) {
  ASSERT_TRUE(queue_.SetTenant(1, 1, {.reserved = 0, .soft = 100, .hard = 100}).ok());
  ASSERT_TRUE(Push("a1", 1, 60).ok());
  ASSERT_TRUE(Push("a2", 1, 60).ok());
  EXPECT_THAT(StartAll(), ElementsAre("a1"));
  ASSERT_TRUE(queue_.SetTenant(1, 1, {.reserved = 0, .soft = 200, .hard = 200}).ok());
  EXPECT_THAT(StartAll(), ElementsAre("a2"));
}

TEST_F(DispatchQueueTest, ChecksSettingsBeforeItChangesAny) {
  ASSERT_TRUE(queue_.SetTenant(1, 1, {.reserved = 0, .soft = 100, .hard = 100}).ok());
  EXPECT_EQ(queue_.SetTenant(1, 0, {}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Push("x", 1, 101).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(queue_.SetTenant(1, 1, {.reserved = 1001}).code(),
            absl::StatusCode::kFailedPrecondition);
}

// Results that may stay in device memory, beside a megabyte of page-locked memory.
class DispatchQueueHeldTest : public ::testing::Test, private PinnedZones::Queue {
 protected:
  DispatchQueueHeldTest() { queue_.residents().SetLimit(1, 250); }

  void Push(std::string name, uint64_t pinned_bytes = 1000, uint64_t device_bytes = 100) {
    DispatchQueue::Entry entry{.task = Named(std::move(name)),
                               .tenant = 1,
                               .may_hold = true,
                               .device_bytes = device_bytes,
                               .pinned_bytes = pinned_bytes};
    pushed_ = queue_.Push(&entry, absl::Now());
  }
  DispatchQueue::Started Start() {
    DispatchQueue::Popped popped = queue_.Pop(absl::Now());
    EXPECT_TRUE(popped.started.has_value());
    return std::move(*popped.started);
  }
  bool NothingStarts() { return !queue_.Pop(absl::Now()).started.has_value(); }
  uint64_t PinnedBytes() { return zones_->tenant_bytes().OfSlot(TenantSlot(1)); }

  std::shared_ptr<PinnedZones> zones_ = PinnedZones::Create(1 << 20, /*overflows=*/false);
  DispatchQueue queue_{{}, 1000, zones_.get(), this};
  absl::Status pushed_;

 private:
  void PinnedMemoryMayFit(uint32_t tenant) override { queue_.PinnedMemoryMayFit(tenant); }
  void ConnectionMayFit(uint64_t connection) override { queue_.ConnectionMayFit(connection); }
};

TEST_F(DispatchQueueHeldTest, StayAsFarAsTheTenantsPartGoesAndAreCopiedBeyondIt) {
  for (const char* name : {"a", "b", "c", "d"}) Push(name);
  DispatchQueue::Started a = Start();
  DispatchQueue::Started b = Start();
  EXPECT_TRUE(a.lease.is_held && b.lease.is_held);
  EXPECT_EQ(PinnedBytes(), 0u);

  const DispatchQueue::Started c = Start();
  EXPECT_FALSE(c.lease.is_held);
  EXPECT_EQ(PinnedBytes(), 1000u);

  // The run has ended, its results have not left.
  EXPECT_EQ(queue_.residents().Left(1), 50u);
  queue_.Ended(b.lease, absl::Milliseconds(1));
  EXPECT_EQ(queue_.residents().Left(1), 150u);
  EXPECT_TRUE(Start().lease.is_held);
}

TEST_F(DispatchQueueHeldTest, WhatFitsNowhereElseWaitsForThePart) {
  Push("never", /*pinned_bytes=*/2 << 20, /*device_bytes=*/251);
  EXPECT_EQ(pushed_.code(), absl::StatusCode::kFailedPrecondition) << pushed_;

  ASSERT_TRUE(queue_.TryTakeMemory(1, 200));  // a resident tensor
  Push("large", /*pinned_bytes=*/2 << 20);
  ASSERT_TRUE(pushed_.ok()) << pushed_;
  EXPECT_TRUE(NothingStarts());
  EXPECT_FALSE(queue_.MayStart());

  queue_.GiveMemory(1, 200);
  EXPECT_TRUE(queue_.MayStart());
  EXPECT_TRUE(Start().lease.is_held);
}

TEST_F(DispatchQueueHeldTest, WhatMustHoldWaitsForThePartAndIsPassedByAllOthers) {
  ASSERT_TRUE(queue_.TryTakeMemory(1, 200));
  DispatchQueue::Entry booking{
      .task = Named(std::string("booking")), .tenant = 1, .must_hold = true, .device_bytes = 251};
  EXPECT_EQ(queue_.Push(&booking, absl::Now()).code(), absl::StatusCode::kFailedPrecondition);
  booking.device_bytes = 100;
  ASSERT_TRUE(queue_.Push(&booking, absl::Now()).ok());
  EXPECT_TRUE(NothingStarts());
  EXPECT_FALSE(queue_.MayStart());
  EXPECT_THAT(queue_.memory().waiting(), IsEmpty()) << "there is memory, but not for this";
  Push("other", /*pinned_bytes=*/0, /*device_bytes=*/10);
  EXPECT_EQ(NameOf<std::string>(Start().entry), "other");
  // One that lacks memory itself lets only steps pass.
  Push("large", /*pinned_bytes=*/0, /*device_bytes=*/800);
  Push("small", /*pinned_bytes=*/0, /*device_bytes=*/10);
  Push("step", /*pinned_bytes=*/0, /*device_bytes=*/0);
  EXPECT_EQ(NameOf<std::string>(Start().entry), "step");
  EXPECT_TRUE(NothingStarts());
  EXPECT_FALSE(queue_.MayStart());

  queue_.GiveMemory(1, 200);
  const DispatchQueue::Started started = Start();
  EXPECT_EQ(NameOf<std::string>(started.entry), "booking");
  EXPECT_TRUE(started.lease.is_held);
}

// Page-locked memory, too, may be free only when what has device memory goes on.
TEST_F(DispatchQueueHeldTest, StepsPassAnEntryThatWaitsForPageLockedMemory) {
  ASSERT_TRUE(queue_.TryTakeMemory(1, 200));
  Push("large", /*pinned_bytes=*/2 << 20);
  EXPECT_TRUE(NothingStarts());
  Push("step", /*pinned_bytes=*/0, /*device_bytes=*/0);
  EXPECT_EQ(NameOf<std::string>(Start().entry), "step");
  // The one that was passed still waits for both.
  EXPECT_TRUE(NothingStarts());
  queue_.GiveMemory(1, 200);
  EXPECT_EQ(NameOf<std::string>(Start().entry), "large");
}

TEST(DispatchQueuePayloadTest, NeedsOnlyBeMovable) {
  DispatchQueue queue({}, 1);
  const char keys[3] = {};
  for (int i = 0; i < 3; ++i) {
    QueueEntry entry{.task = Named(i), .key = &keys[i]};
    ASSERT_TRUE(queue.Push(&entry, absl::UnixEpoch()).ok());
    EXPECT_EQ(entry.task, nullptr);
  }
  EXPECT_EQ(NameOf<int>(*queue.Remove(&keys[1])), 1);
  EXPECT_EQ(NameOf<int>(queue.Pop(absl::UnixEpoch()).started->entry), 0);
  EXPECT_EQ(NameOf<int>(queue.TakeAll().front()), 2);
}

TEST_F(DispatchQueueTest, ForgetsATenantThatHasNothing) {
  ASSERT_TRUE(Push("holder", 1, 800).ok());
  ASSERT_TRUE(Push("large", 2, 800).ok());
  EXPECT_THAT(StartAll(), ElementsAre("holder"));
  EXPECT_FALSE(queue_.Forget(1)) << "it runs";
  EXPECT_FALSE(queue_.Forget(2)) << "it waits for memory";
  End("holder");
  EXPECT_THAT(StartAll(), ElementsAre("large"));
  End("large");
  EXPECT_TRUE(queue_.Forget(1));
  EXPECT_TRUE(queue_.Forget(2));
}

}  // namespace
}  // namespace opserve::server
