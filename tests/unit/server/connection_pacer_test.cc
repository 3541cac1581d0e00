#include "server/net/connection_pacer.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opserve::server {
namespace {

using ::testing::ElementsAre;
using Id = ConnectionPacer::Id;
using Turn = ConnectionPacer::Turn;

constexpr absl::Time kFloodTime = absl::UnixEpoch();
constexpr absl::Duration kMoment = absl::Microseconds(1);
constexpr absl::Duration kPeriod = ConnectionPacer::kPeriod;
constexpr absl::Duration kMemory = ConnectionPacer::kMemory;

bool AlwaysQuiet(Id /*id*/) { return true; }

// Ids of the connections that enter at `now`.
std::vector<Id> TakeAllDue(ConnectionPacer& pacer, absl::Time now,
                           absl::FunctionRef<bool(Id)> is_quiet = AlwaysQuiet) {
  std::vector<Id> ids;
  while (const auto id = pacer.TakeDue(now, is_quiet)) ids.push_back(*id);
  return ids;
}

struct TurnCase {
  const char* name;
  const char* peer;  // that asks; "a" flooded at kFloodTime
  absl::Duration first;
  absl::Duration second;
  Turn first_turn;
  Turn second_turn;
};

class ConnectionPacerTest : public testing::TestWithParam<TurnCase> {};
INSTANTIATE_TEST_SUITE_P(
    All, ConnectionPacerTest,
    testing::Values(
        TurnCase{"AnotherPeer", "b", kMoment, kMoment, Turn::kFree, Turn::kFree},
        TurnCase{"AnUnknownPeer", "", kMoment, kMoment, Turn::kFree, Turn::kFree},
        TurnCase{"TwoAtOnce", "a", kMoment, kMoment, Turn::kPaced, Turn::kWait},
        TurnCase{"TwoWithinAPeriod", "a", kMoment, kPeriod, Turn::kPaced, Turn::kWait},
        TurnCase{"TwoInTwoPeriods", "a", kMoment, kMoment + kPeriod, Turn::kPaced, Turn::kPaced},
        TurnCase{"AtTheEnd", "a", kMoment, kMemory - kMoment, Turn::kPaced, Turn::kPaced},
        TurnCase{"AfterTheEnd", "a", kMemory, kMemory, Turn::kFree, Turn::kFree}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_P(ConnectionPacerTest, Asks) {
  const TurnCase& c = GetParam();
  ConnectionPacer pacer;
  pacer.Remember("a", kFloodTime);
  pacer.Remember("", kFloodTime);
  EXPECT_EQ(pacer.Ask(c.peer, kFloodTime + c.first), c.first_turn);
  EXPECT_EQ(pacer.Ask(c.peer, kFloodTime + c.second), c.second_turn);
}

TEST(ConnectionPacerTest, AnotherFloodMakesTheMemoryLonger) {
  ConnectionPacer pacer;
  pacer.Remember("a", kFloodTime);
  pacer.Remember("a", kFloodTime + kMemory / 2);
  pacer.Remember("a", kFloodTime);  // reported late
  EXPECT_EQ(pacer.Ask("a", kFloodTime + kMemory), Turn::kPaced);
  EXPECT_EQ(pacer.Ask("a", kFloodTime + kMemory * 3 / 2), Turn::kFree);
}

struct ChargeCase {
  const char* name;
  double price;  // of each of the connections that "a" closes
  int connections;
  absl::Duration between;
  Turn turn;  // of the next, at the time of the last
};

class ConnectionPacerChargeTest : public testing::TestWithParam<ChargeCase> {};
INSTANTIATE_TEST_SUITE_P(
    All, ConnectionPacerChargeTest,
    testing::Values(
        ChargeCase{"OneAtAnyPrice", ConnectionPacer::kUnservedBurst, 1, {}, Turn::kFree},
        ChargeCase{"TwoAtHalfThePriceAndOneMore",
                   ConnectionPacer::kUnservedBurst / 2,
                   3,
                   {},
                   Turn::kPaced},
        ChargeCase{"ManyAtTheRate", ConnectionPacer::kUnservedPerSecond / 10, 10'000,
                   absl::Milliseconds(100), Turn::kFree},
        ChargeCase{"ManyAtTwiceTheRate", ConnectionPacer::kUnservedPerSecond / 10, 10'000,
                   absl::Milliseconds(50), Turn::kPaced}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_P(ConnectionPacerChargeTest, PacesPeersWhoseAccountIsOverdrawn) {
  const ChargeCase& c = GetParam();
  ConnectionPacer pacer;
  absl::Time now = kFloodTime;
  for (int i = 0; i < c.connections; ++i) {
    now += c.between;
    pacer.Charge("a", c.price, now);
  }
  EXPECT_EQ(pacer.Ask("a", now), c.turn);
  EXPECT_EQ(pacer.Ask("b", now), Turn::kFree);
}

TEST(ConnectionPacerTest, AnOverdrawnAccountIsEvenAfterASecond) {
  ConnectionPacer pacer;
  for (int i = 0; i < 100; ++i) pacer.Charge("a", ConnectionPacer::kUnservedBurst, kFloodTime);
  pacer.Charge("a", 1, kFloodTime + absl::Seconds(1) + absl::Milliseconds(10));
  EXPECT_EQ(pacer.Ask("a", kFloodTime + kMemory), Turn::kFree) << "the last was no flood";
}

TEST(ConnectionPacerTest, PeersThatWereChargedMakeRoomBeforeFloods) {
  ConnectionPacer pacer;
  pacer.Remember("flood", kFloodTime);
  for (size_t i = 0; i < 2 * ConnectionPacer::kMaxPeers; ++i) {
    pacer.Charge(absl::StrCat(i), 1, kFloodTime + static_cast<int>(i) * kMoment);
  }
  EXPECT_EQ(pacer.Ask("flood", kFloodTime), Turn::kPaced);
}

TEST(ConnectionPacerTest, ConnectionsEnterInTheirOrderAndAtTheRate) {
  ConnectionPacer pacer;
  pacer.Remember("a", kFloodTime);
  EXPECT_EQ(pacer.NextDue(), absl::InfiniteFuture());
  EXPECT_EQ(pacer.Ask("a", kFloodTime), Turn::kPaced);
  for (Id id = 1; id <= 3; ++id) {
    EXPECT_EQ(pacer.Ask("a", kFloodTime), Turn::kWait);
    pacer.Enqueue("a", id);
  }
  for (Id id = 1; id <= 3; ++id) {
    const absl::Time due = kFloodTime + static_cast<int>(id) * kPeriod;
    EXPECT_EQ(pacer.NextDue(), due);
    EXPECT_THAT(TakeAllDue(pacer, due - kMoment), ElementsAre());
    EXPECT_THAT(TakeAllDue(pacer, due), ElementsAre(id));
  }
  EXPECT_EQ(pacer.NextDue(), absl::InfiniteFuture());
}

TEST(ConnectionPacerTest, NoNewConnectionOvertakesThoseThatWait) {
  ConnectionPacer pacer;
  pacer.Remember("a", kFloodTime);
  pacer.Ask("a", kFloodTime);
  pacer.Enqueue("a", 1);
  EXPECT_EQ(pacer.Ask("a", kFloodTime + 2 * kMemory), Turn::kWait) << "although its turn has come";
}

TEST(ConnectionPacerTest, QuietConnectionsEnterFirst) {
  ConnectionPacer pacer;
  pacer.Remember("a", kFloodTime);
  for (Id id = 1; id <= 5; ++id) pacer.Enqueue("a", id);
  const auto is_quiet = [](Id id) { return id == 3 || id == 4; };
  std::vector<Id> order;
  for (int i = 0; i < 5; ++i) {
    for (const Id id : TakeAllDue(pacer, kFloodTime + i * kPeriod, is_quiet)) order.push_back(id);
  }
  EXPECT_THAT(order, ElementsAre(3, 4, 1, 2, 5));
}

TEST(ConnectionPacerTest, PeersDoNotWaitForEachOther) {
  ConnectionPacer pacer;
  for (const char* peer : {"a", "b"}) pacer.Remember(peer, kFloodTime);
  for (Id id = 1; id <= 3; ++id) pacer.Enqueue("a", id);
  pacer.Enqueue("b", 4);
  EXPECT_THAT(TakeAllDue(pacer, kFloodTime), ElementsAre(1, 4));
}

TEST(ConnectionPacerTest, ThoseThatEndedDoNotWait) {
  ConnectionPacer pacer;
  pacer.Remember("a", kFloodTime);
  for (Id id = 1; id <= 3; ++id) pacer.Enqueue("a", id);
  for (const Id id : {Id{1}, Id{3}, Id{77}}) pacer.Remove("a", id);
  pacer.Remove("nobody", 2);
  EXPECT_THAT(TakeAllDue(pacer, kFloodTime), ElementsAre(2));
  EXPECT_EQ(pacer.NextDue(), absl::InfiniteFuture());
}

TEST(ConnectionPacerTest, TheQueueIsBounded) {
  ConnectionPacer pacer;
  pacer.Remember("a", kFloodTime);
  pacer.Ask("a", kFloodTime);
  for (Id id = 1; id <= ConnectionPacer::kMaxWaiting; ++id) {
    ASSERT_EQ(pacer.Ask("a", kFloodTime), Turn::kWait);
    pacer.Enqueue("a", id);
  }
  EXPECT_EQ(pacer.Ask("a", kFloodTime), Turn::kFull);
  EXPECT_EQ(pacer.OldestOf("a"), 1);
  pacer.Remove("a", 1);
  EXPECT_EQ(pacer.Ask("a", kFloodTime), Turn::kWait);
}

TEST(ConnectionPacerTest, TheOldestPeerWithoutWaitersMakesRoom) {
  ConnectionPacer pacer;
  const auto name = [](size_t number) { return absl::StrCat("peer ", number); };
  for (size_t i = 0; i < ConnectionPacer::kMaxPeers; ++i) {
    pacer.Remember(name(i), kFloodTime + static_cast<int>(i) * kMoment);
  }
  pacer.Enqueue(name(0), 1);
  const absl::Time now = kFloodTime + absl::Seconds(1);
  pacer.Remember("new", now);
  EXPECT_EQ(pacer.Ask("new", now), Turn::kPaced);
  EXPECT_EQ(pacer.Ask(name(0), now), Turn::kWait);
  EXPECT_EQ(pacer.Ask(name(1), now), Turn::kFree) << "it is forgotten";
  EXPECT_EQ(pacer.Ask(name(2), now), Turn::kPaced);
}

TEST(ConnectionPacerTest, PeersWithWaitersAreKept) {
  ConnectionPacer pacer;
  for (Id i = 0; i < ConnectionPacer::kMaxPeers; ++i) {
    pacer.Remember(absl::StrCat(i), kFloodTime);
    pacer.Enqueue(absl::StrCat(i), i + 1);
  }
  pacer.Remember("new", kFloodTime);
  EXPECT_EQ(pacer.Ask("new", kFloodTime), Turn::kFree);
  EXPECT_EQ(TakeAllDue(pacer, kFloodTime).size(), ConnectionPacer::kMaxPeers);
}

}  // namespace
}  // namespace opserve::server
