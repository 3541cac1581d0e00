#include "server/access/connection_slots.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opserve::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Id = ConnectionSlots::Id;
using Limit = ConnectionSlots::Limit;
using Rank = ConnectionSlots::Rank;

constexpr absl::Time kStart = absl::UnixEpoch();

// Connections get the ids 1, 2, 3 ... in the order of their steps.
struct Step {
  size_t listener;
  const char* peer;
  Rank rank;  // reached at once
};

struct Case {
  const char* name;
  ConnectionSlots::Limits limits;
  std::vector<Step> before;
  size_t listener;
  const char* peer;
  std::optional<Limit> refused;
  std::vector<Id> evicted;
};

constexpr auto kSilent = Rank::kSilent;
constexpr auto kAnswered = Rank::kAnswered;
constexpr auto kIdentified = Rank::kIdentified;

const Case kCases[] = {
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
     {2, 2, 2},
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
     Limit::kPeer,
     {}},
    {"APeerIsBoundedOverItsListeners",
     {9, 9, 2},
     {{0, "a", kIdentified}, {1, "a", kIdentified}},
     2,
     "a",
     Limit::kPeer,
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

class ConnectionSlotsTest : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(All, ConnectionSlotsTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(ConnectionSlotsTest, Decides) {
  const Case& c = GetParam();
  ConnectionSlots slots(c.limits);
  for (const Step& step : c.before) {
    const auto decision = slots.Admit(step.listener, step.peer, kStart);
    ASSERT_FALSE(decision.refused);
    ASSERT_THAT(decision.evicted, IsEmpty());
    slots.Raise(decision.id, step.rank);
  }
  const auto decision = slots.Admit(c.listener, c.peer, kStart);
  EXPECT_EQ(decision.refused, c.refused);
  EXPECT_THAT(decision.evicted, testing::ElementsAreArray(c.evicted));
  EXPECT_EQ(slots.size(), c.before.size() + (c.refused ? 0 : 1) - c.evicted.size());
}

TEST(ConnectionSlotsTimeTest, SilenceEnds) {
  ConnectionSlots slots(
      {.total = 9, .per_listener = 9, .per_peer = 9, .silence = absl::Seconds(10)});
  EXPECT_EQ(slots.NextOverdue(), absl::InfiniteFuture());
  const auto at = [](int seconds) { return kStart + absl::Seconds(seconds); };
  const Id first = slots.Admit(0, "a", at(0)).id;
  const Id second = slots.Admit(0, "a", at(3)).id;
  const Id answered = slots.Admit(0, "a", at(3)).id;
  const Id identified = slots.Admit(0, "a", at(3)).id;
  slots.Raise(answered, kAnswered);
  slots.Raise(identified, kIdentified);
  slots.Raise(identified, kAnswered);  // never back
  EXPECT_THAT(slots.CountsOf(0), ElementsAre(2, 1, 1));
  EXPECT_THAT(slots.CountsOf(1), ElementsAre(0, 0, 0));

  EXPECT_EQ(slots.NextOverdue(), at(10));
  EXPECT_THAT(slots.TakeOverdue(at(9)), IsEmpty());
  EXPECT_THAT(slots.TakeOverdue(at(10)), ElementsAre(first));
  EXPECT_EQ(slots.NextOverdue(), at(13));
  EXPECT_THAT(slots.TakeOverdue(at(1000)), ElementsAre(second));
  EXPECT_EQ(slots.NextOverdue(), absl::InfiniteFuture());
  EXPECT_THAT(slots.CountsOf(0), ElementsAre(0, 1, 1));
}

TEST(ConnectionSlotsTimeTest, SlotsAreUsedAgain) {
  ConnectionSlots slots(
      {.total = 64, .per_listener = 48, .per_peer = 32, .silence = absl::Seconds(10)});
  for (int i = 0; i < 100'000; ++i) {
    const auto decision = slots.Admit(i % 3, absl::StrCat(i), kStart);
    ASSERT_FALSE(decision.refused);
    if (i % 7 == 0) slots.Raise(decision.id, kIdentified);
    if (i % 7 == 0) slots.Remove(decision.id);
  }
  EXPECT_LE(slots.size(), 64u);
  slots.Remove(1);  // evicted long ago
  slots.Raise(1, kIdentified);
  for (const Id id : slots.TakeOverdue(absl::InfiniteFuture())) slots.Remove(id);
  EXPECT_EQ(slots.size(), 0u);
}

}  // namespace
}  // namespace opserve::server
