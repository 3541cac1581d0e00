// The page-locked memory that several queues share.

#include "server/scheduling/pinned_zones.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/catalog/error.h"
#include "server/scheduling/dispatch_queue.h"

namespace opserve::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TestQueue final : public PinnedZones::Queue {
 public:
  void PinnedMemoryMayFit(uint32_t tenant) override { told_.push_back(tenant); }
  // Since it was asked last.
  std::vector<uint32_t> Told() { return std::exchange(told_, {}); }

 private:
  std::vector<uint32_t> told_;
};

class PinnedZonesTest : public ::testing::Test {
 protected:
  void Set(const std::vector<TenantSettings>& tenants) {
    ASSERT_TRUE(zones_->SetTenants(tenants).ok());
  }
  // As a queue does.
  std::optional<PinnedAllowance> Take(TestQueue* queue, uint32_t tenant, uint64_t bytes) {
    auto taken = zones_->TryTake(queue, tenant, bytes);
    zones_->TellWaiting();
    return taken;
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
    EXPECT_EQ(catalog::GetErrorDetail(status)->reason(), c.reason);
    EXPECT_EQ(catalog::GetErrorDetail(status)->retry_pushback_ms(), -1);
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

// Two devices' queues, each with any number of lanes.
class PinnedDispatchTest : public ::testing::Test {
 protected:
  using Tasks = DispatchQueue<std::string>;
  struct Device final : PinnedZones::Queue {
    explicit Device(PinnedZones* zones) : tasks({}, 1000, zones, this) {}
    void PinnedMemoryMayFit(uint32_t tenant) override { tasks.PinnedMemoryMayFit(tenant); }
    Tasks tasks;
  };

  absl::Status Push(Device* device, std::string name, uint32_t tenant, uint64_t pinned_bytes,
                    uint64_t device_bytes = 0) {
    Tasks::Entry entry{.payload = std::move(name),
                       .key = device,
                       .tenant = tenant,
                       .estimate = absl::Milliseconds(10),
                       .device_bytes = device_bytes,
                       .pinned_bytes = pinned_bytes};
    if (tenant != 9) entry.key = nullptr;
    return device->tasks.Push(&entry, absl::UnixEpoch());
  }
  std::vector<std::string> StartAll(Device* device) {
    std::vector<std::string> names;
    while (device->tasks.MayStart()) {
      Tasks::Popped popped = device->tasks.Pop(absl::UnixEpoch());
      zones_->TellWaiting();
      if (!popped.started) break;
      names.push_back(popped.started->entry.payload);
      running_.push_back(std::move(*popped.started));
    }
    EXPECT_FALSE(device->tasks.MayStart()) << "it would be asked again and again";
    return names;
  }
  // Its device time is over; its results are not sent.
  void End(Device* device, const std::string& name) {
    for (Tasks::Started& run : running_) {
      if (run.entry.payload == name) device->tasks.Ended(run.lease, absl::Milliseconds(10));
    }
  }
  void SendResults(const std::string& name) {
    for (Tasks::Started& run : running_) {
      if (run.entry.payload == name) run.pinned = {};
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

TEST_F(PinnedDispatchTest, RefusesWhatCanNeverFit) {
  const absl::Status status = Push(&one_, "a", 1, 1001);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(catalog::GetErrorDetail(status)->retry_pushback_ms(), -1);
  EXPECT_EQ(one_.tasks.depth(), 0u);
}

}  // namespace
}  // namespace opserve::server
