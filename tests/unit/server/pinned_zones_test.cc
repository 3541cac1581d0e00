// The page-locked memory that several queues share.

#include "server/schedule/policy/pinned_zones.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/status/error.h"
#include "server/schedule/policy/dispatch_queue.h"
#include "tests/unit/server/named_task.h"

namespace opserve::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TestQueue final : public PinnedZones::Queue {
 public:
  void PinnedMemoryMayFit(uint32_t tenant) override { told_.push_back(tenant); }
  void ConnectionMayFit(uint64_t connection) override { told_of_readers_.push_back(connection); }
  // Since it was asked last.
  std::vector<uint32_t> Told() { return std::exchange(told_, {}); }
  std::vector<uint64_t> ToldOfReaders() { return std::exchange(told_of_readers_, {}); }

 private:
  std::vector<uint32_t> told_;
  std::vector<uint64_t> told_of_readers_;
};

class PinnedZonesTest : public ::testing::Test {
 protected:
  void Set(const std::vector<TenantSettings>& tenants) {
    ASSERT_TRUE(zones_->SetTenants(tenants).ok());
  }
  // As a queue does.
  std::optional<PinnedAllowance> Take(TestQueue* queue, uint32_t tenant, uint64_t bytes,
                                      uint64_t connection = 0) {
    auto taken = zones_->TryTake(queue, tenant, bytes, connection);
    zones_->TellWaiting();
    return std::move(taken.allowance);
  }

  std::shared_ptr<PinnedZones> zones_ = PinnedZones::Create(1000, /*overflows=*/false);
  TestQueue one_, two_;
};

TEST_F(PinnedZonesTest, WhatATenantMayNotHaveIsLeftToOthers) {
  Set({{.tenant = 1, .pinned = {.reserved = 0, .soft = 600, .hard = 600}}});
  const auto held = Take(&one_, 1, 600);
  ASSERT_TRUE(held.has_value());
  EXPECT_FALSE(Take(&one_, 1, 1).has_value());
  EXPECT_TRUE(Take(&one_, 2, 400).has_value());
  EXPECT_EQ(zones_->tenant_bytes().OfSlot(1), 600u);
}

TEST_F(PinnedZonesTest, AQueueIsToldOnceWhenMemoryIsBackWhereverItWasTaken) {
  auto held = Take(&one_, 1, 1000);
  EXPECT_FALSE(Take(&two_, 2, 300).has_value());
  EXPECT_THAT(two_.Told(), IsEmpty());

  held.reset();
  EXPECT_THAT(two_.Told(), ElementsAre(2));
  EXPECT_THAT(one_.Told(), IsEmpty());
  zones_->TellWaiting();
  EXPECT_THAT(two_.Told(), IsEmpty()) << "it was told already";
  EXPECT_TRUE(Take(&two_, 2, 300).has_value());
}

TEST_F(PinnedZonesTest, WhoGotItsMemoryKeepsNoTurn) {
  Set({{.tenant = 3, .pinned = {.reserved = 0, .soft = 100, .hard = 1000}}});
  auto held = Take(&one_, 1, 1000);
  EXPECT_FALSE(Take(&two_, 2, 300).has_value());
  held.reset();
  const auto taken = Take(&two_, 2, 300);
  EXPECT_TRUE(taken.has_value());
  const auto own = Take(&one_, 3, 100);
  EXPECT_TRUE(Take(&one_, 3, 100).has_value()) << "nobody waits, so more than its soft limit";
}

TEST_F(PinnedZonesTest, WhoComesTooLateIsToldAgain) {
  auto held = Take(&one_, 1, 1000);
  EXPECT_FALSE(Take(&two_, 2, 300).has_value());
  held.reset();
  EXPECT_THAT(two_.Told(), ElementsAre(2));
  auto faster = Take(&one_, 3, 900);
  ASSERT_TRUE(faster.has_value());
  EXPECT_FALSE(Take(&two_, 2, 300).has_value());
  EXPECT_THAT(two_.Told(), IsEmpty());
  faster.reset();
  EXPECT_THAT(two_.Told(), ElementsAre(2));
}

TEST_F(PinnedZonesTest, ATenantThatWaitsAtSeveralQueuesIsToldOfEachWhenThatFits) {
  auto large = Take(&one_, 1, 700);
  auto small = Take(&one_, 1, 300);
  EXPECT_FALSE(Take(&one_, 2, 800).has_value());
  EXPECT_FALSE(Take(&two_, 2, 200).has_value());

  small.reset();
  EXPECT_THAT(two_.Told(), ElementsAre(2));
  EXPECT_THAT(one_.Told(), IsEmpty());
  large.reset();
  EXPECT_THAT(one_.Told(), ElementsAre(2));
  EXPECT_THAT(two_.Told(), IsEmpty());
}

TEST_F(PinnedZonesTest, ATurnThatIsGivenUpPassesToTheNext) {
  Set({{.tenant = 3, .pinned = {.reserved = 0, .soft = 100, .hard = 1000}}});
  const auto held = Take(&one_, 1, 500);
  const auto own = Take(&one_, 3, 100);
  EXPECT_FALSE(Take(&one_, 2, 800).has_value());
  EXPECT_FALSE(Take(&two_, 3, 100).has_value()) << "above its soft limit while another waits";

  zones_->StopWaiting(&one_, 2);
  zones_->TellWaiting();
  EXPECT_THAT(two_.Told(), ElementsAre(3));
}

TEST_F(PinnedZonesTest, AQueueThatIsGoneIsNotTold) {
  auto held = Take(&one_, 1, 1000);
  EXPECT_FALSE(Take(&two_, 2, 300).has_value());
  zones_->Detach(&two_);
  held.reset();
  EXPECT_THAT(two_.Told(), IsEmpty());
}

TEST_F(PinnedZonesTest, ResultsMayOutliveTheirOwner) {
  auto held = Take(&one_, 1, 1000);
  zones_.reset();
  held.reset();
}

TEST_F(PinnedZonesTest, RefusesWhatCanNeverFit) {
  Set({{.tenant = 1, .pinned = {.reserved = 100, .soft = 200, .hard = 300}}});
  EXPECT_TRUE(zones_->CheckCanEverFit(1, 300).ok());
  EXPECT_TRUE(zones_->CheckCanEverFit(2, 900).ok());
  struct Case {
    uint32_t tenant;
    uint64_t bytes;
    const char* reason;
  };
  for (const Case& c : {Case{1, 301, "tenant_memory"}, {2, 901, "too_large"}}) {
    const absl::Status status = zones_->CheckCanEverFit(c.tenant, c.bytes);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(ErrorDetailOf(status)->reason(), c.reason);
    EXPECT_EQ(ErrorDetailOf(status)->retry_pushback_ms(), -1);
  }
}

TEST_F(PinnedZonesTest, WithOrdinaryMemoryNobodyWaitsAndNobodyTakesWhatIsReserved) {
  zones_ = PinnedZones::Create(1000, /*overflows=*/true);
  Set({{.tenant = 1, .pinned = {.reserved = 400, .soft = 1000, .hard = 1000}}});
  const auto held = Take(&one_, 2, 600);
  EXPECT_TRUE(held->is_pinned);
  const auto more = Take(&one_, 2, 1);
  ASSERT_TRUE(more.has_value());
  EXPECT_FALSE(more->is_pinned);
  EXPECT_TRUE(Take(&one_, 1, 400)->is_pinned);
}

TEST_F(PinnedZonesTest, ReservationsMoveFromTenantToTenant) {
  Set({{.tenant = 1, .pinned = {.reserved = 900}}, {.tenant = 2, .pinned = {}}});
  Set({{.tenant = 1, .pinned = {}}, {.tenant = 2, .pinned = {.reserved = 900}}});
  EXPECT_FALSE(Take(&one_, 1, 101).has_value());
  EXPECT_TRUE(Take(&one_, 2, 900).has_value());
}

TEST_F(PinnedZonesTest, AConnectionGetsAQuarterOfItsTenantsMemory) {
  Set({{.tenant = 1, .pinned = {.reserved = 0, .soft = 400, .hard = 400}}});
  const auto first = Take(&one_, 1, 60, /*connection=*/7);
  const auto second = Take(&one_, 1, 40, /*connection=*/7);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(zones_->TryTake(&one_, 1, 1, /*connection=*/7).is_connection_full);
  EXPECT_TRUE(Take(&one_, 1, 100, /*connection=*/8).has_value());
  EXPECT_TRUE(Take(&one_, 2, 250, /*connection=*/9).has_value()) << "a quarter of all";
  EXPECT_TRUE(Take(&one_, 1, 100).has_value()) << "without a reader";
}

TEST_F(PinnedZonesTest, AConnectionWithoutResultsGetsOneOfAnySize) {
  auto large = Take(&one_, 1, 900, /*connection=*/7);
  EXPECT_TRUE(large.has_value());
  EXPECT_FALSE(Take(&one_, 1, 1, /*connection=*/7).has_value());
  large.reset();
  EXPECT_TRUE(Take(&one_, 1, 900, /*connection=*/7).has_value());
}

TEST_F(PinnedZonesTest, QueuesAreToldOnceWhenAConnectionHasReadSomething) {
  auto first = Take(&one_, 1, 200, /*connection=*/7);
  auto second = Take(&one_, 1, 50, /*connection=*/7);
  EXPECT_FALSE(Take(&one_, 1, 30, /*connection=*/7).has_value());
  EXPECT_FALSE(Take(&two_, 1, 30, /*connection=*/7).has_value());
  EXPECT_FALSE(Take(&two_, 1, 40, /*connection=*/7).has_value());
  EXPECT_TRUE(zones_->WaitsForReaders());
  EXPECT_FALSE(zones_->AnybodyWaits()) << "there is memory";
  EXPECT_THAT(one_.ToldOfReaders(), IsEmpty());

  second.reset();
  EXPECT_THAT(one_.ToldOfReaders(), ElementsAre(7));
  EXPECT_THAT(two_.ToldOfReaders(), ElementsAre(7));
  EXPECT_FALSE(zones_->WaitsForReaders());
  EXPECT_TRUE(Take(&one_, 1, 30, /*connection=*/7).has_value());
  first.reset();
  EXPECT_THAT(one_.ToldOfReaders(), IsEmpty());
}

TEST_F(PinnedZonesTest, AQueueThatIsGoneIsNotToldOfReaders) {
  auto held = Take(&one_, 1, 250, /*connection=*/7);
  EXPECT_FALSE(Take(&two_, 1, 1, /*connection=*/7).has_value());
  zones_->Detach(&two_);
  EXPECT_FALSE(zones_->WaitsForReaders());
  held.reset();
  EXPECT_THAT(two_.ToldOfReaders(), IsEmpty());
}

// Two devices' queues, each with any number of lanes.
class PinnedDispatchTest : public ::testing::Test {
 protected:
  using Tasks = DispatchQueue;
  struct Device final : PinnedZones::Queue {
    explicit Device(PinnedZones* zones) : tasks({.capacity_per_tenant = 16}, 1000, zones, this) {}
    void PinnedMemoryMayFit(uint32_t tenant) override { tasks.PinnedMemoryMayFit(tenant); }
    void ConnectionMayFit(uint64_t connection) override { tasks.ConnectionMayFit(connection); }
    Tasks tasks;
  };

  absl::Status Push(Device* device, std::string name, uint32_t tenant, uint64_t pinned_bytes,
                    uint64_t device_bytes = 0, uint64_t connection = 0) {
    Tasks::Entry entry{.task = Named(std::move(name)),
                       .key = device,
                       .tenant = tenant,
                       .estimate = absl::Milliseconds(10),
                       .device_bytes = device_bytes,
                       .pinned_bytes = pinned_bytes,
                       .connection = connection};
    if (tenant != 9) entry.key = nullptr;
    return device->tasks.Push(&entry, absl::UnixEpoch());
  }
  std::vector<std::string> StartAll(Device* device) {
    std::vector<std::string> names;
    while (device->tasks.MayStart()) {
      Tasks::Popped popped = device->tasks.Pop(absl::UnixEpoch());
      zones_->TellWaiting();
      if (!popped.started) break;
      names.push_back(NameOf<std::string>(popped.started->entry));
      running_.push_back(std::move(*popped.started));
    }
    EXPECT_FALSE(device->tasks.MayStart()) << "it would be asked again and again";
    return names;
  }
  // Its device time is over; its results are not sent.
  void End(Device* device, const std::string& name) {
    for (Tasks::Started& run : running_) {
      if (NameOf<std::string>(run.entry) == name)
        device->tasks.Ended(run.lease, absl::Milliseconds(10));
    }
  }
  void SendResults(const std::string& name) {
    for (Tasks::Started& run : running_) {
      if (NameOf<std::string>(run.entry) == name) run.pinned = {};
    }
  }

  std::shared_ptr<PinnedZones> zones_ = PinnedZones::Create(1000, /*overflows=*/false);
  Device one_{zones_.get()};
  Device two_{zones_.get()};
  std::vector<Tasks::Started> running_;
};

TEST_F(PinnedDispatchTest, ResultsCountUntilTheyAreSent) {
  ASSERT_TRUE(Push(&one_, "a1", 1, 600).ok());
  ASSERT_TRUE(Push(&one_, "a2", 1, 600).ok());
  ASSERT_TRUE(Push(&one_, "b1", 2, 400).ok());
  ASSERT_TRUE(Push(&two_, "b2", 2, 400).ok());
  EXPECT_THAT(StartAll(&one_), ElementsAre("a1", "b1")) << "who has no room is passed over";
  EXPECT_THAT(StartAll(&two_), IsEmpty());
  End(&one_, "a1");
  EXPECT_THAT(StartAll(&one_), IsEmpty());

  SendResults("a1");
  EXPECT_THAT(StartAll(&two_), ElementsAre("b2"));
  EXPECT_THAT(StartAll(&one_), IsEmpty());
  SendResults("b1");
  SendResults("b2");
  EXPECT_THAT(StartAll(&one_), ElementsAre("a2"));
}

TEST_F(PinnedDispatchTest, NoDeviceMemoryIsHeldByWhatWaitsForResultsMemory) {
  ASSERT_TRUE(Push(&one_, "a1", 1, 1000).ok());
  ASSERT_TRUE(Push(&one_, "a2", 1, 10, /*device_bytes=*/1000).ok());
  EXPECT_THAT(StartAll(&one_), ElementsAre("a1"));
  ASSERT_TRUE(Push(&one_, "b1", 2, 0, /*device_bytes=*/1000).ok());
  EXPECT_THAT(StartAll(&one_), ElementsAre("b1"));
  SendResults("a1");
  EXPECT_THAT(StartAll(&one_), IsEmpty()) << "now it waits for device memory";
  End(&one_, "b1");
  EXPECT_THAT(StartAll(&one_), ElementsAre("a2"));
}

TEST_F(PinnedDispatchTest, WhatIsTakenFromTheQueueWaitsForNothing) {
  ASSERT_TRUE(Push(&one_, "a1", 1, 500).ok());
  EXPECT_THAT(StartAll(&one_), ElementsAre("a1"));
  ASSERT_TRUE(Push(&one_, "large", 9, 800).ok());
  EXPECT_THAT(StartAll(&one_), IsEmpty());
  EXPECT_TRUE(one_.tasks.Remove(&one_).has_value());
  zones_->TellWaiting();
  // Would be left to whoever waits, above its soft limit.
  const TenantSettings narrow = {.tenant = 1, .pinned = {.reserved = 0, .soft = 100}};
  ASSERT_TRUE(zones_->SetTenants({&narrow, 1}).ok());
  ASSERT_TRUE(Push(&two_, "a2", 1, 500).ok());
  EXPECT_THAT(StartAll(&two_), ElementsAre("a2"));
}

TEST_F(PinnedDispatchTest, AFullConnectionHoldsUpNoOtherOfItsTenant) {
  for (const char* name : {"x1", "x2", "x3", "x4"}) {
    ASSERT_TRUE(Push(&one_, name, 1, 150, 0, /*connection=*/7).ok());
  }
  ASSERT_TRUE(Push(&one_, "y1", 1, 150, 0, /*connection=*/8).ok());
  EXPECT_THAT(StartAll(&one_), ElementsAre("x1", "y1"));
  EXPECT_EQ(one_.tasks.depth(1), 3u) << "what is set aside waits";

  ASSERT_TRUE(Push(&one_, "y2", 1, 100, 0, /*connection=*/8).ok());
  EXPECT_THAT(StartAll(&one_), ElementsAre("y2"));
  SendResults("x1");
  EXPECT_THAT(StartAll(&one_), ElementsAre("x2")) << "one fits, and in their order";
  SendResults("x2");
  EXPECT_THAT(StartAll(&one_), ElementsAre("x3"));
  SendResults("y1");
  EXPECT_THAT(StartAll(&one_), IsEmpty());
  SendResults("x3");
  EXPECT_THAT(StartAll(&one_), ElementsAre("x4"));
}

TEST_F(PinnedDispatchTest, AFullConnectionIsToldByEveryQueueItWaitsIn) {
  ASSERT_TRUE(Push(&one_, "x1", 1, 250, 0, /*connection=*/7).ok());
  EXPECT_THAT(StartAll(&one_), ElementsAre("x1"));
  ASSERT_TRUE(Push(&one_, "x2", 1, 120, 0, /*connection=*/7).ok());
  ASSERT_TRUE(Push(&two_, "x3", 1, 120, 0, /*connection=*/7).ok());
  EXPECT_THAT(StartAll(&one_), IsEmpty());
  EXPECT_THAT(StartAll(&two_), IsEmpty());
  SendResults("x1");
  EXPECT_THAT(StartAll(&one_), ElementsAre("x2"));
  EXPECT_THAT(StartAll(&two_), ElementsAre("x3"));
}

// Whatever leaves, the next of its connection takes its place in the order.
TEST_F(PinnedDispatchTest, WhatIsSetAsideCanBeRemovedAndExpires) {
  ASSERT_TRUE(Push(&one_, "x1", 9, 250, 0, /*connection=*/7).ok());
  EXPECT_THAT(StartAll(&one_), ElementsAre("x1"));
  ASSERT_TRUE(Push(&one_, "removed", 9, 10, 0, /*connection=*/7).ok());
  EXPECT_THAT(StartAll(&one_), IsEmpty());
  EXPECT_EQ(NameOf<std::string>(*one_.tasks.Remove(&one_)), "removed");
  EXPECT_EQ(one_.tasks.depth(), 0u);

  ASSERT_TRUE(Push(&one_, "x2", 9, 10, 0, /*connection=*/7).ok());
  EXPECT_THAT(StartAll(&one_), IsEmpty());
  EXPECT_EQ(one_.tasks.TakeAll().size(), 1u);
  SendResults("x1");
  EXPECT_THAT(StartAll(&one_), IsEmpty());
  ASSERT_TRUE(Push(&one_, "x3", 9, 10, 0, /*connection=*/7).ok());
  EXPECT_THAT(StartAll(&one_), ElementsAre("x3"));
}

TEST_F(PinnedDispatchTest, AFullConnectionGetsAQuarterOfItsTenantsQueue) {
  ASSERT_TRUE(Push(&one_, "x1", 1, 250, 0, /*connection=*/7).ok());
  EXPECT_THAT(StartAll(&one_), ElementsAre("x1"));
  ASSERT_TRUE(Push(&one_, "x2", 1, 250, 0, /*connection=*/7).ok());
  EXPECT_THAT(StartAll(&one_), IsEmpty());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Push(&one_, "x", 1, 1, 0, /*connection=*/7).ok());
  const absl::Status full = Push(&one_, "x", 1, 1, 0, /*connection=*/7);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrorDetailOf(full)->reason(), "tenant_queue_full");
  EXPECT_GT(ErrorDetailOf(full)->retry_pushback_ms(), 0);
  EXPECT_TRUE(Push(&one_, "y", 1, 1, 0, /*connection=*/8).ok());
}

// A tenant that waits for memory of its own must not be forgotten when its last entry in the order
// leaves and one that was set aside comes back.
TEST_F(PinnedDispatchTest, ATenantThatWaitedGoesOnWithWhatWasSetAside) {
  const TenantSettings narrow = {.tenant = 9, .pinned = {.reserved = 0, .soft = 400, .hard = 400}};
  ASSERT_TRUE(zones_->SetTenants({&narrow, 1}).ok());
  ASSERT_TRUE(Push(&two_, "y1", 9, 300, 0, /*connection=*/8).ok());
  ASSERT_TRUE(Push(&one_, "x1", 9, 90, 0, /*connection=*/7).ok());
  EXPECT_THAT(StartAll(&two_), ElementsAre("y1"));
  EXPECT_THAT(StartAll(&one_), ElementsAre("x1"));
  Tasks::Entry aside{
      .task = Named(std::string("x2")), .tenant = 9, .pinned_bytes = 20, .connection = 7};
  ASSERT_TRUE(one_.tasks.Push(&aside, absl::UnixEpoch()).ok());
  EXPECT_THAT(StartAll(&one_), IsEmpty()) << "connection 7 has 90 of 100 already";
  ASSERT_TRUE(Push(&one_, "z1", 9, 100, 0, /*connection=*/6).ok());
  EXPECT_THAT(StartAll(&one_), IsEmpty()) << "the tenant has 390 of 400 already";
  EXPECT_EQ(NameOf<std::string>(*one_.tasks.Remove(&one_)), "z1");
  SendResults("x1");
  EXPECT_THAT(StartAll(&one_), ElementsAre("x2"));
}

TEST_F(PinnedDispatchTest, RefusesWhatCanNeverFit) {
  const absl::Status status = Push(&one_, "a", 1, 1001);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ErrorDetailOf(status)->retry_pushback_ms(), -1);
  EXPECT_EQ(one_.tasks.depth(), 0u);
}

}  // namespace
}  // namespace opserve::server
