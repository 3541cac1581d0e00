#include "server/net/connection_slots.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/net/connection_limits.h"

namespace opserve::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Id = ConnectionSlots::Id;
using Limit = ConnectionSlots::Limit;
using Rank = ConnectionSlots::Rank;

constexpr absl::Time kStart = absl::UnixEpoch();

// Ranks that were not raised before are not known now either.
std::optional<Rank> AsReported(Id /*id*/) { return Rank::kSilent; }

ConnectionSlots::Peer Address(const std::string& name) { return {.name = name}; }

// Connections get the ids 1, 2, 3 ... in the order of their steps.
struct Step {
  size_t listener;
  const char* peer;
  Rank rank;  // reached at once
};

struct AdmissionCase {
  const char* name;
  std::array<uint32_t, 3> limits;  // total, of a listener, of an address
  std::vector<Step> before;
  size_t listener;
  const char* peer;
  std::optional<Limit> refused;
  std::vector<Id> evicted;
};

constexpr auto kSilent = Rank::kSilent;
constexpr auto kAnswered = Rank::kAnswered;
constexpr auto kIdentified = Rank::kIdentified;

const AdmissionCase kCases[] = {
    {"Room", {3, 3, 3}, {{0, "a", kSilent}, {0, "a", kSilent}}, 0, "a", std::nullopt, {}},
    {"TheOldestSilentOneMakesRoom",
     {3, 3, 3},
     {{0, "a", kIdentified}, {0, "b", kSilent}, {0, "c", kSilent}},
     0,
     "d",
     std::nullopt,
     {2}},
    {"SilentOnesGoBeforeOlderAnsweredOnes",
     {2, 2, 2},
     {{0, "a", kAnswered}, {0, "b", kSilent}},
     0,
     "c",
     std::nullopt,
     {2}},
    {"AnsweredOnesGoBeforeIdentifiedOnes",
     {2, 2, 2},
     {{0, "a", kIdentified}, {0, "b", kAnswered}},
     0,
     "c",
     std::nullopt,
     {2}},
    {"IdentifiedOnesStay",
     {2, 9, 9},
     {{0, "a", kIdentified}, {0, "b", kIdentified}},
     0,
     "c",
     Limit::kTotal,
     {}},
    {"APeerMakesRoomForItself",
     {9, 9, 2},
     {{0, "b", kSilent}, {0, "a", kIdentified}, {0, "a", kSilent}},
     0,
     "a",
     std::nullopt,
     {3}},
    {"APeerWithIdentifiedOnesIsRefused",
     {9, 9, 2},
     {{0, "b", kSilent}, {0, "a", kIdentified}, {0, "a", kIdentified}},
     0,
     "a",
     Limit::kAddress,
     {}},
    {"APeerIsBoundedOverItsListeners",
     {9, 9, 2},
     {{0, "a", kIdentified}, {1, "a", kIdentified}},
     2,
     "a",
     Limit::kAddress,
     {}},
    {"AFullListenerIsRefused",
     {9, 2, 9},
     {{0, "a", kIdentified}, {0, "b", kIdentified}, {1, "c", kSilent}},
     0,
     "d",
     Limit::kListener,
     {}},
    {"AFullListenerLeavesTheOthersOpen",
     {9, 2, 9},
     {{0, "a", kIdentified}, {0, "b", kIdentified}},
     1,
     "d",
     std::nullopt,
     {}},
    {"SilentOnesOfOtherListenersMakeRoomInTotal",
     {2, 2, 2},
     {{0, "a", kSilent}, {0, "b", kIdentified}},
     1,
     "c",
     std::nullopt,
     {1}},
    {"OneEvictionServesEveryLimit",
     {2, 2, 2},
     {{0, "a", kSilent}, {0, "a", kSilent}},
     0,
     "a",
     std::nullopt,
     {1}},
    {"SeveralAreEvictedWhereLimitsAskForIt",
     {3, 1, 2},
     {{0, "a", kSilent}, {1, "a", kIdentified}, {2, "b", kSilent}},
     2,
     "a",
     std::nullopt,
     {1, 3}},
    {"NothingIsEvictedForARefusal",
     {3, 1, 2},
     {{0, "a", kSilent}, {1, "a", kIdentified}, {2, "b", kIdentified}},
     2,
     "a",
     Limit::kListener,
     {}},
};

class ConnectionSlotsTest : public testing::TestWithParam<AdmissionCase> {};

INSTANTIATE_TEST_SUITE_P(All, ConnectionSlotsTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(ConnectionSlotsTest, Decides) {
  const AdmissionCase& c = GetParam();
  ConnectionSlots slots({.total = c.limits[0],
                         .per_listener = c.limits[1],
                         .per_user = 1,
                         .per_address = c.limits[2],
                         .silence = absl::Seconds(10)});
  for (const Step& step : c.before) {
    const auto decision = slots.Admit(step.listener, Address(step.peer), kStart, AsReported);
    ASSERT_FALSE(decision.refused);
    ASSERT_THAT(decision.evicted, IsEmpty());
    slots.Raise(decision.id, step.rank);
  }
  const auto decision = slots.Admit(c.listener, Address(c.peer), kStart, AsReported);
  EXPECT_EQ(decision.refused, c.refused);
  EXPECT_THAT(decision.evicted, testing::ElementsAreArray(c.evicted));
  EXPECT_EQ(slots.size(), c.before.size() + (c.refused ? 0 : 1) - c.evicted.size());
}

TEST(ConnectionSlotsTimeTest, SilenceEnds) {
  ConnectionSlots slots({.total = 9,
                         .per_listener = 9,
                         .per_user = 1,
                         .per_address = 9,
                         .silence = absl::Seconds(10)});
  EXPECT_EQ(slots.NextOverdue(), absl::InfiniteFuture());
  const auto at = [](int seconds) { return kStart + absl::Seconds(seconds); };
  const Id first = slots.Admit(0, Address("a"), at(0), AsReported).id;
  const Id second = slots.Admit(0, Address("a"), at(3), AsReported).id;
  const Id answered = slots.Admit(0, Address("a"), at(3), AsReported).id;
  const Id identified = slots.Admit(0, Address("a"), at(3), AsReported).id;
  slots.Raise(answered, kAnswered);
  slots.Raise(identified, kIdentified);
  slots.Raise(identified, kAnswered);  // never back
  EXPECT_THAT(slots.CountsOf(0), ElementsAre(2, 1, 1));
  EXPECT_THAT(slots.CountsOf(1), ElementsAre(0, 0, 0));

  EXPECT_EQ(slots.NextOverdue(), at(10));
  EXPECT_THAT(slots.TakeOverdue(at(9), AsReported), IsEmpty());
  EXPECT_THAT(slots.TakeOverdue(at(10), AsReported), ElementsAre(first));
  EXPECT_EQ(slots.NextOverdue(), at(13));
  EXPECT_THAT(slots.TakeOverdue(at(1000), AsReported), ElementsAre(second));
  EXPECT_EQ(slots.NextOverdue(), absl::InfiniteFuture());
  EXPECT_THAT(slots.CountsOf(0), ElementsAre(0, 1, 1));
}

TEST(ConnectionSlotsRankTest, IsAskedForBeforeASlotIsTaken) {
  ConnectionSlots slots({.total = 3,
                         .per_listener = 3,
                         .per_user = 3,
                         .per_address = 3,
                         .silence = absl::Seconds(10)});
  std::map<Id, std::optional<Rank>> ranks;
  const auto rank_of = [&](Id id) { return ranks.at(id); };
  for (Id id = 1; id <= 3; ++id) {
    EXPECT_EQ(slots.Admit(0, Address("a"), kStart, rank_of).id, id);
    ranks[id] = kSilent;
  }
  ranks[1] = kIdentified;
  ranks[2] = kAnswered;
  EXPECT_THAT(slots.Admit(0, Address("a"), kStart, rank_of).evicted, ElementsAre(3));
  ranks[4] = std::nullopt;  // leaves room
  EXPECT_THAT(slots.Admit(0, Address("a"), kStart, rank_of).evicted, IsEmpty());
  ranks[5] = kSilent;
  EXPECT_THAT(slots.CountsOf(0), ElementsAre(1, 1, 1));

  ranks[5] = kIdentified;
  EXPECT_THAT(slots.TakeOverdue(absl::InfiniteFuture(), rank_of), IsEmpty());
  EXPECT_THAT(slots.CountsOf(0), ElementsAre(0, 1, 2));
  ranks[2] = kIdentified;
  EXPECT_EQ(slots.Admit(0, Address("a"), kStart, rank_of).refused, Limit::kAddress);
}

TEST(ConnectionSlotsRankTest, UsersAndAddressesHaveLimitsOfTheirOwn) {
  ConnectionSlots slots({.total = 9,
                         .per_listener = 9,
                         .per_user = 1,
                         .per_address = 2,
                         .silence = absl::Seconds(10)});
  const auto identified = [](Id) { return std::optional(kIdentified); };
  const ConnectionSlots::Peer user = {.name = "uid 7", .is_user = true};
  EXPECT_FALSE(slots.Admit(0, user, kStart, identified).refused);
  EXPECT_EQ(slots.Admit(0, user, kStart, identified).refused, Limit::kUser);
  EXPECT_FALSE(slots.Admit(0, Address("a"), kStart, identified).refused);
  EXPECT_FALSE(slots.Admit(0, Address("a"), kStart, identified).refused);
  EXPECT_EQ(slots.Admit(0, Address("a"), kStart, identified).refused, Limit::kAddress);
}

TEST(ConnectionSlotsTimeTest, SlotsAreUsedAgain) {
  ConnectionSlots slots({.total = 64,
                         .per_listener = 48,
                         .per_user = 1,
                         .per_address = 32,
                         .silence = absl::Seconds(10)});
  for (int i = 0; i < 100'000; ++i) {
    const auto decision = slots.Admit(i % 3, Address(absl::StrCat(i)), kStart, AsReported);
    ASSERT_FALSE(decision.refused);
    if (i % 7 == 0) slots.Raise(decision.id, kIdentified);
    if (i % 7 == 0) slots.Remove(decision.id);
  }
  EXPECT_LE(slots.size(), 64u);
  slots.Remove(1);  // evicted long ago
  slots.Raise(1, kIdentified);
  for (const Id id : slots.TakeOverdue(absl::InfiniteFuture(), AsReported)) slots.Remove(id);
  EXPECT_EQ(slots.size(), 0u);
}

TEST(ConnectionLimitsTest, AreDerivedWhereTheyAreNotConfigured) {
  Config config;
  config.max_connections = 1024;
  config.first_call_timeout = absl::Seconds(3);
  ConnectionSlots::Limits limits = ConnectionLimits(config, /*listeners=*/1);
  EXPECT_EQ(limits.total, 1024u);
  EXPECT_EQ(limits.per_listener, 1024u);
  EXPECT_EQ(limits.per_user, 512u);
  EXPECT_EQ(limits.per_address, 512u);
  EXPECT_EQ(limits.silence, absl::Seconds(3));
  EXPECT_EQ(ConnectionLimits(config, /*listeners=*/2).per_listener, 768u);

  config.max_connections = 1;
  limits = ConnectionLimits(config, /*listeners=*/2);
  EXPECT_EQ(limits.per_listener, 1u);
  EXPECT_EQ(limits.per_user, 1u);
  EXPECT_EQ(limits.per_address, 1u);

  config.max_connections_per_listener = 7;
  config.max_connections_per_user = 8;
  config.max_connections_per_address = 9;
  limits = ConnectionLimits(config, /*listeners=*/2);
  EXPECT_EQ(limits.per_listener, 7u);
  EXPECT_EQ(limits.per_user, 8u);
  EXPECT_EQ(limits.per_address, 9u);
}

}  // namespace
}  // namespace opserve::server
