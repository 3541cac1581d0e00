#include "server/run/tensor_claims.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/run/early_claim.h"
#include "tests/seed.h"
#include "tests/unit/server/leases.h"

namespace opserve::server {
namespace {

using Outcome = TensorClaims::Outcome;
using Wish = TensorClaims::Wish;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TensorClaimsTest : public ::testing::Test {
 protected:
  // Claims; notes in `ended` how a wait ends.
  TensorClaims::Ticket Claim(const std::vector<Wish>& wishes,
                             absl::Time deadline = absl::InfiniteFuture()) {
    const TensorClaims::Ticket ticket = claims_.NewTicket();
    const bool is_granted =
        claims_.Claim(ticket, wishes, deadline, [this, ticket](Outcome outcome) {
          (outcome == Outcome::kGranted ? granted_ : expired_).push_back(ticket);
        });
    if (is_granted) at_once_.insert(ticket);
    return ticket;
  }
  // As Claim, ahead of those that wait.
  TensorClaims::Ticket ClaimAhead(const std::vector<const ResidentTensor*>& tensors) {
    const TensorClaims::Ticket ticket = claims_.NewTicket();
    if (claims_.ClaimAhead(ticket, tensors,
                           [this, ticket](Outcome) { granted_.push_back(ticket); })) {
      at_once_.insert(ticket);
    }
    return ticket;
  }
  bool IsAtOnce(TensorClaims::Ticket ticket) const { return at_once_.contains(ticket); }

  ResidentTensor a_;
  ResidentTensor b_;
  TensorClaims claims_;
  std::set<TensorClaims::Ticket> at_once_;
  std::vector<TensorClaims::Ticket> granted_;  // after a wait, in order
  std::vector<TensorClaims::Ticket> expired_;
};

TEST_F(TensorClaimsTest, OnlyReadersShareATensor) {
  for (const bool first_is_alone : {false, true}) {
    for (const bool second_is_alone : {false, true}) {
      SCOPED_TRACE(testing::Message() << first_is_alone << second_is_alone);
      granted_.clear();
      const auto first = Claim({{&a_, first_is_alone}});
      const auto second = Claim({{&a_, second_is_alone}});

      EXPECT_TRUE(IsAtOnce(first));
      EXPECT_EQ(IsAtOnce(second), !first_is_alone && !second_is_alone);
      EXPECT_EQ(claims_.waiting(), IsAtOnce(second) ? 0u : 1u);
      claims_.Release(first);
      if (!IsAtOnce(second)) {
        EXPECT_THAT(granted_, ElementsAre(second));
      }
      claims_.Release(second);
      EXPECT_EQ(claims_.waiting(), 0u);
    }
  }
}

TEST_F(TensorClaimsTest, AReaderDoesNotOvertakeAChangeThatWaits) {
  const auto reader = Claim({{&a_, false}});
  const auto change = Claim({{&a_, true}});
  const auto later = Claim({{&a_, false}});
  const auto last = Claim({{&a_, false}});

  EXPECT_FALSE(IsAtOnce(later));
  claims_.Release(reader);
  EXPECT_THAT(granted_, ElementsAre(change));
  claims_.Release(change);
  EXPECT_THAT(granted_, ElementsAre(change, later, last));
}

TEST_F(TensorClaimsTest, AllTensorsOfARequestAreGrantedTogether) {
  const auto first = Claim({{&a_, true}});
  const auto second = Claim({{&b_, true}});
  const auto both = Claim({{&a_, true}, {&b_, true}});

  claims_.Release(first);
  EXPECT_THAT(granted_, IsEmpty());
  claims_.Release(second);
  EXPECT_THAT(granted_, ElementsAre(both));
}

TEST_F(TensorClaimsTest, AWithdrawnRequestBlocksNoOther) {
  const auto first = Claim({{&a_, false}});
  const auto change = Claim({{&a_, true}});
  const auto reader = Claim({{&a_, false}});

  EXPECT_TRUE(claims_.Withdraw(change));
  EXPECT_THAT(granted_, ElementsAre(reader));
  EXPECT_FALSE(claims_.Withdraw(change));
  EXPECT_FALSE(claims_.Withdraw(reader));  // granted
  EXPECT_FALSE(claims_.Withdraw(first));
}

TEST_F(TensorClaimsTest, AClaimAheadWaitsForNothingButThoseThatHaveTheTensors) {
  const auto change = Claim({{&a_, true}});
  const auto both = Claim({{&a_, false}, {&b_, false}});  // waits, though it could have b
  const auto reader = Claim({{&b_, false}});
  EXPECT_TRUE(IsAtOnce(reader));

  const auto ahead = ClaimAhead({&a_, &b_});
  const auto later = Claim({{&b_, false}});

  EXPECT_FALSE(IsAtOnce(ahead));
  EXPECT_FALSE(IsAtOnce(later));
  claims_.Release(change);
  EXPECT_THAT(granted_, IsEmpty());
  claims_.Release(reader);
  EXPECT_THAT(granted_, ElementsAre(ahead));
  claims_.Release(ahead);
  EXPECT_THAT(granted_, ElementsAre(ahead, both, later));
}

TEST_F(TensorClaimsTest, WaitsEndAtTheirDeadline) {
  const auto first = Claim({{&a_, true}});
  const auto early = Claim({{&a_, true}}, At(10));
  const auto late = Claim({{&a_, false}}, At(20));

  claims_.Expire(At(9));
  EXPECT_THAT(expired_, IsEmpty());
  claims_.Expire(At(10));
  EXPECT_THAT(expired_, ElementsAre(early));
  claims_.Release(first);
  EXPECT_THAT(granted_, ElementsAre(late));
  claims_.Expire(At(30));  // granted ones have no deadline here
  EXPECT_THAT(expired_, ElementsAre(early));
}

// Random claims, releases, withdrawals and deadlines beside a model: the requests in the order of
// their arrival, those with claims ahead before all that wait, each granted when none before it
// stands in its way.
TEST_F(TensorClaimsTest, RandomRequestsAreGrantedInTheirOrder) {
  struct Request {
    TensorClaims::Ticket ticket = 0;
    std::vector<Wish> wishes;
    absl::Time deadline;
    bool is_granted = false;
  };
  std::mt19937 random(TestSeed(11));
  const auto below = [&](uint32_t end) {
    return std::uniform_int_distribution<uint32_t>(0, end - 1)(random);
  };
  std::vector<ResidentTensor> tensors(4);
  std::deque<Request> requests;
  const auto collide = [](const Request& one, const Request& other) {
    for (const Wish& wish : one.wishes) {
      for (const Wish& another : other.wishes) {
        if (wish.tensor == another.tensor && (wish.is_alone || another.is_alone)) return true;
      }
    }
    return false;
  };
  // Grants by the model; the tickets that are new among the granted.
  const auto grant = [&] {
    std::set<TensorClaims::Ticket> news;
    for (size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].is_granted) continue;
      const bool is_free =
          std::none_of(requests.begin(), requests.begin() + static_cast<std::ptrdiff_t>(i),
                       [&](const Request& before) { return collide(requests[i], before); });
      if (!is_free) continue;
      requests[i].is_granted = true;
      news.insert(requests[i].ticket);
    }
    return news;
  };
  int64_t now = 0;
  for (int step = 0; step < 20'000; ++step) {
    granted_.clear();
    expired_.clear();
    bool is_swept = false;
    std::optional<TensorClaims::Ticket> claimed;
    const auto take = [&](size_t position) {
      requests.erase(requests.begin() + static_cast<std::ptrdiff_t>(position));
    };
    switch (requests.size() > 12 ? 1 + below(3) : below(4)) {
      case 0: {
        std::vector<Wish> wishes;
        for (const ResidentTensor& tensor : tensors) {
          if (below(2) == 0) wishes.push_back({&tensor, below(3) == 0});
        }
        if (wishes.empty()) continue;
        if (below(6) == 0) {
          std::vector<const ResidentTensor*> ahead;
          for (Wish& wish : wishes) {
            wish.is_alone = true;
            ahead.push_back(wish.tensor);
          }
          claimed = ClaimAhead(ahead);
          const auto waiting = std::stable_partition(
              requests.begin(), requests.end(), [](const Request& one) { return one.is_granted; });
          requests.insert(waiting, {*claimed, wishes, absl::InfiniteFuture()});
          break;
        }
        const absl::Time deadline = At(now + 1 + below(20));
        claimed = Claim(wishes, deadline);
        requests.push_back({*claimed, wishes, deadline});
        break;
      }
      case 1: {
        if (requests.empty()) continue;
        const size_t position = below(static_cast<uint32_t>(requests.size()));
        if (!requests[position].is_granted) continue;
        const TensorClaims::Ticket ticket = requests[position].ticket;
        take(position);
        claims_.Release(ticket);
        break;
      }
      case 2: {
        if (requests.empty()) continue;
        const size_t position = below(static_cast<uint32_t>(requests.size()));
        EXPECT_EQ(claims_.Withdraw(requests[position].ticket), !requests[position].is_granted);
        if (!requests[position].is_granted) take(position);
        break;
      }
      default:
        now += below(3);
        claims_.Expire(At(now));
        is_swept = true;
        for (const TensorClaims::Ticket ticket : expired_) {
          const auto one =
              std::find_if(requests.begin(), requests.end(),
                           [&](const Request& other) { return other.ticket == ticket; });
          ASSERT_NE(one, requests.end());
          EXPECT_FALSE(one->is_granted);
          EXPECT_LE(one->deadline, At(now));
          requests.erase(one);
        }
    }
    const std::set<TensorClaims::Ticket> news = grant();
    std::set<TensorClaims::Ticket> seen(granted_.begin(), granted_.end());
    if (claimed && IsAtOnce(*claimed)) seen.insert(*claimed);
    ASSERT_EQ(seen, news) << "step " << step;
    const auto waiting = std::count_if(requests.begin(), requests.end(),
                                       [](const Request& one) { return !one.is_granted; });
    ASSERT_EQ(claims_.waiting(), static_cast<uint64_t>(waiting));
    for (const Request& one : requests) {
      if (is_swept && !one.is_granted) {
        ASSERT_GT(one.deadline, At(now));
      }
    }
  }
}

// EarlyClaim: the claim of a request that cannot run yet.

TEST_F(TensorClaimsTest, AnEarlyClaimHasItsTurnBeforeItCanRun) {
  const TensorClaims::Ticket early = claims_.NewTicket();
  const auto claim = EarlyClaim::Take(claims_, early, {{&a_, true}}, absl::InfiniteFuture());
  const TensorClaims::Ticket later = Claim({{&a_, false}});
  EXPECT_FALSE(IsAtOnce(later));

  EXPECT_TRUE(claim->Await([](Outcome) { ADD_FAILURE(); }));

  claims_.Release(early);
  EXPECT_THAT(granted_, ElementsAre(later));
}

TEST_F(TensorClaimsTest, AnEarlyClaimTellsOfTheEndOfItsWait) {
  for (const bool awaits_first : {false, true}) {
    for (const Outcome wanted : {Outcome::kGranted, Outcome::kExpired}) {
      SCOPED_TRACE(testing::Message() << awaits_first << static_cast<int>(wanted));
      const TensorClaims::Ticket holder = Claim({{&a_, true}});
      const TensorClaims::Ticket early = claims_.NewTicket();
      const auto claim = EarlyClaim::Take(claims_, early, {{&a_, true}}, At(1));
      std::vector<Outcome> outcomes;
      const auto note = [&outcomes](Outcome outcome) { outcomes.push_back(outcome); };
      bool has_turn = awaits_first && claim->Await(note);
      EXPECT_FALSE(has_turn);

      if (wanted == Outcome::kGranted) {
        claims_.Release(holder);
      } else {
        claims_.Expire(At(1));
      }

      if (!awaits_first) has_turn = claim->Await(note);
      const bool is_told_by_call = awaits_first || wanted == Outcome::kExpired;
      EXPECT_EQ(has_turn, !is_told_by_call);
      EXPECT_EQ(outcomes, is_told_by_call ? std::vector{wanted} : std::vector<Outcome>());
      claims_.Release(holder);
      claims_.Release(early);
    }
  }
}

TEST_F(TensorClaimsTest, AReleaseEndsTheWaitOfAnEarlyClaim) {
  const TensorClaims::Ticket holder = Claim({{&a_, true}});
  const TensorClaims::Ticket early = claims_.NewTicket();
  const auto claim = EarlyClaim::Take(claims_, early, {{&a_, true}}, absl::InfiniteFuture());
  const TensorClaims::Ticket later = Claim({{&a_, true}});
  EXPECT_EQ(claims_.waiting(), 2u);

  claims_.Release(early);

  EXPECT_EQ(claims_.waiting(), 1u);
  claims_.Release(holder);
  EXPECT_THAT(granted_, ElementsAre(later));
}

}  // namespace
}  // namespace opserve::server
