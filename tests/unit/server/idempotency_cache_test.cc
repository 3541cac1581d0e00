// Requests with an idempotency key: who runs, who waits, what is kept and for how long.

#include "server/request/idempotency_cache.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/status/error.h"
#include "tests/unit/server/error_detail.h"

namespace opserve::server {
namespace {

constexpr uint64_t kKiB = 1 << 10;

// One request, from Begin on.
struct Caller {
  absl::StatusOr<IdempotencyCache::Begun> begun = absl::UnknownError("not begun");
  std::shared_ptr<CallState> run_call;
  std::shared_ptr<std::vector<RequestEnd>> ends = std::make_shared<std::vector<RequestEnd>>();

  bool is_first() const { return begun->is_first; }
  uint64_t run() const { return begun->place.run; }
  const IdempotencyCache::Answer& kept() const { return begun->answer; }
};

using Keeping = IdempotencyCache::Keeping;
using Memory = IdempotencyCache::Memory;

class IdempotencyCacheTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kMaxBytes = 64 * kKiB;

  // A request with `key` whose contents are `body`.
  Caller Begin(const std::string& key, uint8_t body = 0, uint32_t tenant = 0, uint32_t weight = 1) {
    Caller caller;
    caller.run_call = std::make_shared<CallState>(absl::InfiniteFuture());
    RequestDigest digest = {};
    digest[0] = body;
    caller.begun = cache_.Begin(
        {.tenant = tenant, .weight = weight, .key = key, .digest = digest}, caller.run_call,
        [ends = caller.ends](const RequestEnd& end) { ends->push_back(end); }, now_);
    return caller;
  }

  // The same of a request that a client has numbered.
  Caller BeginNumber(uint64_t number, uint64_t answered_below, const std::string& client = "one",
                     uint32_t tenant = 0) {
    Caller caller;
    caller.run_call = std::make_shared<CallState>(absl::InfiniteFuture());
    caller.begun = cache_.Begin(
        {.tenant = tenant, .identity = {{client, number, answered_below}}}, caller.run_call,
        [ends = caller.ends](const RequestEnd& end) { ends->push_back(end); }, now_);
    return caller;
  }

  // Lets the run of `caller` end well with an answer that is kept; returns it.
  IdempotencyCache::Answer Succeed(const Caller& caller) {
    EXPECT_TRUE(Reserve(caller, kKiB));
    return End(caller);
  }
  IdempotencyCache::Answer End(const Caller& caller) {
    RequestEnd end;
    end.answer = std::make_shared<const RequestAnswer>();
    cache_.End(caller.run(), end, now_);
    return end.answer;
  }
  void Fail(const Caller& caller) {
    RequestEnd end;
    end.status = absl::InternalError("it failed");
    cache_.End(caller.run(), end, now_);
  }
  // Whether the answer is to be kept.
  bool Reserve(const Caller& caller, uint64_t bytes, Keeping keeping = Keeping::kWhileThereIsRoom) {
    return cache_.Reserve(caller.run(), /*results=*/1, bytes, keeping, now_) == Memory::kAnswer;
  }
  // A request of a tenant that has run and left `bytes` of results; whether its answer was kept.
  bool Keep(const std::string& key, uint64_t bytes, uint32_t tenant = 0, uint32_t weight = 1) {
    const Caller caller = Begin(key, /*body=*/0, tenant, weight);
    EXPECT_TRUE(caller.is_first()) << key;
    const bool is_kept = Reserve(caller, bytes);
    End(caller);
    return is_kept;
  }
  bool IsKept(const std::string& key, uint32_t tenant = 0) {
    const Caller caller = Begin(key, /*body=*/0, tenant);
    if (caller.kept() != nullptr) return true;
    Fail(caller);
    return false;
  }
  // Answers of 14 KiB, of which four fill the cache with what each takes beside. "0", "1", ...
  void Fill(uint32_t tenant, int answers) {
    for (int i = 0; i < answers; ++i) EXPECT_TRUE(Keep(absl::StrCat(i), kAnswer, tenant));
  }
  std::string KeptOf(uint32_t tenant, int answers) {
    std::string kept;
    for (int i = 0; i < answers; ++i) {
      if (IsKept(absl::StrCat(i), tenant)) absl::StrAppend(&kept, i);
    }
    return kept;
  }

  static constexpr uint64_t kAnswer = 14 * kKiB;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  IdempotencyCache cache_{{.max_bytes = kMaxBytes, .lifetime = absl::Minutes(10)}};
};

TEST_F(IdempotencyCacheTest, ARepetitionAfterASuccessGetsItsAnswer) {
  const Caller first = Begin("key");
  ASSERT_TRUE(first.is_first());
  const IdempotencyCache::Answer answer = Succeed(first);

  const Caller second = Begin("key");

  EXPECT_EQ(first.ends->at(0).answer, answer);
  EXPECT_EQ(second.kept(), answer);
  EXPECT_FALSE(second.is_first());
}

TEST_F(IdempotencyCacheTest, RepetitionsInProgressShareItsEnd) {
  for (const bool succeeds : {true, false}) {
    const std::string key = succeeds ? "succeeds" : "fails";
    const Caller first = Begin(key);
    const Caller second = Begin(key);
    ASSERT_FALSE(second.is_first());
    ASSERT_EQ(second.kept(), nullptr);

    succeeds ? (void)Succeed(first) : Fail(first);

    for (const Caller& caller : {first, second}) {
      ASSERT_EQ(caller.ends->size(), 1u) << key;
      EXPECT_EQ(caller.ends->at(0).status.ok(), succeeds);
      EXPECT_EQ(caller.ends->at(0).answer, first.ends->at(0).answer);
    }
  }
}

TEST_F(IdempotencyCacheTest, AFailureIsNotRemembered) {
  const Caller first = Begin("key");
  ASSERT_TRUE(Reserve(first, kKiB));
  Fail(first);

  EXPECT_TRUE(Begin("key", /*body=*/1).is_first());
  EXPECT_EQ(cache_.used_bytes(), 0u);
}

TEST_F(IdempotencyCacheTest, AnotherRequestWithTheKeyIsRefused) {
  const Caller first = Begin("key", /*body=*/0);

  const Caller while_running = Begin("key", /*body=*/1);
  Succeed(first);
  const Caller afterwards = Begin("key", /*body=*/1);

  for (const Caller& other : {while_running, afterwards}) {
    EXPECT_EQ(other.begun.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(DetailOf(other.begun.status()).argument(), "idempotency_key");
    EXPECT_TRUE(other.ends->empty());
  }
}

TEST_F(IdempotencyCacheTest, TenantsDoNotShareKeys) {
  Succeed(Begin("key", /*body=*/0, /*tenant=*/1));

  EXPECT_TRUE(Begin("key", /*body=*/1, /*tenant=*/2).is_first());
}

TEST_F(IdempotencyCacheTest, AKeyHasAtMost64Bytes) {
  EXPECT_TRUE(Begin(std::string(64, 'k')).begun.ok());
  EXPECT_EQ(Begin(std::string(65, 'k')).begun.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(IdempotencyCacheTest, AnAnswerIsKeptForItsLifetimeFromTheEndOfTheRun) {
  const Caller first = Begin("key");
  now_ += absl::Minutes(5);
  Succeed(first);

  now_ += absl::Minutes(10) - absl::Nanoseconds(1);
  EXPECT_NE(Begin("key").kept(), nullptr);
  now_ += absl::Nanoseconds(1);
  EXPECT_TRUE(Begin("key").is_first());
  EXPECT_EQ(cache_.used_bytes(), 0u);
}

TEST_F(IdempotencyCacheTest, WhenTheFirstLeavesTheRunGoesOnForTheOthers) {
  const Caller first = Begin("key");
  const Caller second = Begin("key");

  EXPECT_TRUE(cache_.Leave(first.begun->place));
  EXPECT_FALSE(first.run_call->is_cancelled());
  Succeed(first);

  EXPECT_TRUE(first.ends->empty());
  EXPECT_EQ(second.ends->size(), 1u);
  EXPECT_NE(Begin("key").kept(), nullptr);
}

TEST_F(IdempotencyCacheTest, TheLastToLeaveCancelsTheRunAndSeesItsEnd) {
  const Caller first = Begin("key");
  const Caller second = Begin("key");
  ASSERT_TRUE(cache_.Leave(first.begun->place));

  EXPECT_FALSE(cache_.Leave(second.begun->place));
  EXPECT_TRUE(first.run_call->is_cancelled());
  EXPECT_TRUE(second.ends->empty());
  Fail(first);

  EXPECT_EQ(second.ends->size(), 1u);
}

TEST_F(IdempotencyCacheTest, WhatEverybodyLeftIsBegunAnewAndForgotten) {
  const Caller left = Begin("key");
  ASSERT_TRUE(Reserve(left, kKiB));
  cache_.Leave(left.begun->place);
  const Caller next = Begin("key", /*body=*/1);
  ASSERT_TRUE(next.is_first());

  End(left);  // the cancellation came too late

  EXPECT_EQ(left.ends->size(), 1u);
  EXPECT_TRUE(next.ends->empty());
  EXPECT_EQ(cache_.used_bytes(), 0u);
  const IdempotencyCache::Answer answer = Succeed(next);
  EXPECT_EQ(Begin("key", /*body=*/1).kept(), answer);
}

TEST_F(IdempotencyCacheTest, ARunThatChangesTensorsGoesOnWhenItsCallersLeave) {
  const Caller left = Begin("key");
  ASSERT_TRUE(Reserve(left, kKiB, Keeping::kForItsLifetime));

  EXPECT_FALSE(cache_.Leave(left.begun->place));

  EXPECT_FALSE(left.run_call->is_cancelled());
  const Caller again = Begin("key");
  EXPECT_FALSE(again.is_first());
  const IdempotencyCache::Answer answer = End(left);
  EXPECT_EQ(again.ends->at(0).answer, answer);
  EXPECT_EQ(Begin("key").kept(), answer);
}

TEST_F(IdempotencyCacheTest, AnAnswerKeptForItsLifetimeIsNotEvicted) {
  const Caller changes = Begin("changes");
  ASSERT_TRUE(Reserve(changes, kAnswer, Keeping::kForItsLifetime));
  End(changes);

  for (int i = 0; i < 20; ++i) Keep(absl::StrCat(i), kAnswer, /*tenant=*/i % 2);

  EXPECT_TRUE(IsKept("changes"));
  EXPECT_LE(cache_.used_bytes(), kMaxBytes);
  now_ += absl::Minutes(10);
  EXPECT_FALSE(IsKept("changes"));
  EXPECT_EQ(cache_.used_bytes(), 0u);
}

TEST_F(IdempotencyCacheTest, AnswersKeptForTheirLifetimeStayWithinTheTenantsShare) {
  const auto keep = [&](const std::string& key, uint32_t tenant) {
    const Caller caller = Begin(key, /*body=*/0, tenant);
    const bool is_kept = Reserve(caller, kAnswer, Keeping::kForItsLifetime);
    End(caller);
    return is_kept;
  };
  ASSERT_TRUE(Keep("other", kKiB, /*tenant=*/1));

  // Two tenants: 32 KiB each.
  EXPECT_TRUE(keep("0", 0));
  EXPECT_TRUE(keep("1", 0));
  EXPECT_FALSE(keep("2", 0));
  EXPECT_TRUE(Keep("3", kAnswer, /*tenant=*/0));  // may go
  EXPECT_TRUE(keep("0", 1));
  EXPECT_TRUE(IsKept("0") && IsKept("1"));
}

TEST_F(IdempotencyCacheTest, ARunThatChangesTensorsAndFailsGivesItsRoomBack) {
  const Caller fails = Begin("key");
  ASSERT_TRUE(Reserve(fails, kAnswer, Keeping::kForItsLifetime));
  Fail(fails);

  EXPECT_EQ(cache_.used_bytes(), 0u);
  EXPECT_TRUE(Begin("key").is_first());
}

TEST_F(IdempotencyCacheTest, NobodyLeavesTwiceOrAfterTheEnd) {
  const Caller first = Begin("key");
  const Caller second = Begin("key");
  ASSERT_TRUE(cache_.Leave(second.begun->place));

  EXPECT_FALSE(cache_.Leave(second.begun->place));
  EXPECT_FALSE(first.run_call->is_cancelled());
  Succeed(first);
  EXPECT_FALSE(cache_.Leave(first.begun->place));
  EXPECT_FALSE(first.run_call->is_cancelled());
}

TEST_F(IdempotencyCacheTest, AnAnswerOfMoreThanAQuarterIsNotKept) {
  EXPECT_TRUE(Keep("fits", kMaxBytes / 4));
  EXPECT_FALSE(Keep("does not", kMaxBytes / 4 + 1));

  EXPECT_TRUE(IsKept("fits"));
  EXPECT_FALSE(IsKept("does not"));
  EXPECT_EQ(cache_.unremembered().OfSlot(0), 1u);
}

TEST_F(IdempotencyCacheTest, WhenFullTheOldestAnswerGoes) {
  Fill(/*tenant=*/0, 6);

  EXPECT_EQ(KeptOf(0, 6), "2345");
  EXPECT_EQ(cache_.evictions().OfSlot(0), 2u);
  EXPECT_EQ(cache_.unremembered().OfSlot(0), 0u);
  EXPECT_EQ(cache_.entries().OfSlot(0), 4u);
  EXPECT_EQ(cache_.bytes().OfSlot(0), cache_.used_bytes());
}

TEST_F(IdempotencyCacheTest, AKeyInProgressIsNeverForgotten) {
  const Caller running = Begin("running");
  Fill(/*tenant=*/0, 10);

  const Caller repetition = Begin("running");
  EXPECT_FALSE(repetition.is_first());
  Succeed(running);
  EXPECT_EQ(repetition.ends->size(), 1u);
}

TEST_F(IdempotencyCacheTest, BorrowedRoomIsGivenBackAndSharesAreKept) {
  Fill(/*tenant=*/1, 4);

  Fill(/*tenant=*/2, 6);

  EXPECT_EQ(KeptOf(1, 4), "23");
  EXPECT_EQ(KeptOf(2, 6), "45");
  EXPECT_EQ(cache_.evictions().OfSlot(1), 2u);
  EXPECT_EQ(cache_.evictions().OfSlot(2), 4u);
}

TEST_F(IdempotencyCacheTest, AFloodTakesNothingOfATenantWithinItsShare) {
  ASSERT_TRUE(Keep("mine", kAnswer, /*tenant=*/1));

  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(Keep(absl::StrCat(i), kAnswer / 7, /*tenant=*/2));

  EXPECT_TRUE(IsKept("mine", 1));
  EXPECT_TRUE(Keep("another", kAnswer, /*tenant=*/1));
  EXPECT_TRUE(IsKept("mine", 1));
  EXPECT_EQ(cache_.evictions().OfSlot(1), 0u);
  EXPECT_EQ(cache_.unremembered().OfSlot(1), 0u);
}

TEST_F(IdempotencyCacheTest, WeightsDecideHowMuchEachKeeps) {
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(Keep(absl::StrCat(i), kAnswer, /*tenant=*/1, /*weight=*/1));
    EXPECT_TRUE(Keep(absl::StrCat(i), kAnswer, /*tenant=*/2, /*weight=*/3));
  }

  EXPECT_EQ(KeptOf(1, 8), "7");
  EXPECT_EQ(KeptOf(2, 8), "567");
}

TEST_F(IdempotencyCacheTest, WithoutRoomAnAnswerIsNotKeptAndNothingIsForgotten) {
  // All that the others have is within their shares.
  for (uint32_t tenant = 1; tenant <= 8; ++tenant) {
    ASSERT_TRUE(Keep("a", 6 * kKiB, tenant));
  }

  EXPECT_FALSE(Keep("b", kAnswer, /*tenant=*/9));

  EXPECT_EQ(cache_.unremembered().OfSlot(9), 1u);
  for (uint32_t tenant = 1; tenant <= 8; ++tenant) EXPECT_TRUE(IsKept("a", tenant)) << tenant;
}

TEST_F(IdempotencyCacheTest, ResultsWithoutBytesFillItToo) {
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(Keep(absl::StrCat(i), 0));

  EXPECT_LE(cache_.entries().OfSlot(0), 64u);  // of a KiB at least
  EXPECT_GE(cache_.entries().OfSlot(0), 16u);
  EXPECT_LE(cache_.used_bytes(), kMaxBytes);
}

TEST_F(IdempotencyCacheTest, ANumberedRequestIsRunOnce) {
  const Caller first = BeginNumber(7, 7);
  ASSERT_TRUE(first.is_first());
  EXPECT_FALSE(BeginNumber(7, 7).is_first());  // waits for it
  const IdempotencyCache::Answer answer = Succeed(first);

  EXPECT_EQ(BeginNumber(7, 7).kept(), answer);
  EXPECT_TRUE(BeginNumber(8, 7).is_first());
  EXPECT_TRUE(BeginNumber(7, 7, "another client").is_first());
  EXPECT_TRUE(BeginNumber(7, 7, "one", /*tenant=*/1).is_first());
  EXPECT_TRUE(Begin("one7").is_first());  // a key is no number
}

TEST_F(IdempotencyCacheTest, ANumberedRequestThatFailedIsRunAgain) {
  Fail(BeginNumber(1, 1));
  EXPECT_TRUE(BeginNumber(1, 1).is_first());
}

TEST_F(IdempotencyCacheTest, AnswersThatTheClientHasTakeNoMemory) {
  Succeed(BeginNumber(1, 1));
  const uint64_t with_one = cache_.used_bytes();
  for (uint64_t number = 2; number <= 1000; ++number) {
    Succeed(BeginNumber(number, number));
    ASSERT_EQ(cache_.used_bytes(), with_one) << number;
  }
  EXPECT_EQ(cache_.entries().OfSlot(0), 1u);
  EXPECT_EQ(cache_.evictions().OfSlot(0), 0u);
}

TEST_F(IdempotencyCacheTest, AnswersThatTheClientMayNotHaveStay) {
  const IdempotencyCache::Answer first = Succeed(BeginNumber(1, 1));
  const IdempotencyCache::Answer second = Succeed(BeginNumber(2, 1));

  const Caller third = BeginNumber(3, 2);  // it has the first one

  EXPECT_EQ(BeginNumber(2, 2).kept(), second);
  EXPECT_EQ(BeginNumber(1, 0).begun.status().code(), absl::StatusCode::kInvalidArgument);
  Fail(third);
}

TEST_F(IdempotencyCacheTest, OfAnAnswerWithoutRoomItIsKnownThatTheRequestRan) {
  for (const uint64_t bytes : {kMaxBytes / 4 + 1, kMaxBytes}) {
    const Caller first = BeginNumber(bytes, bytes);
    EXPECT_EQ(cache_.Reserve(first.run(), /*results=*/1, bytes, Keeping::kForItsLifetime, now_),
              Memory::kThatItRan);
    ASSERT_TRUE(first.is_first());
    const IdempotencyCache::Answer answer = End(first);
    EXPECT_EQ(first.ends->at(0).answer, answer);  // who waits for it gets it

    const Caller again = BeginNumber(bytes, bytes);
    ASSERT_NE(again.kept(), nullptr);
    EXPECT_FALSE(again.kept()->is_known);
  }
  EXPECT_EQ(cache_.unremembered().OfSlot(0), 2u);
  const Caller with_key = Begin("key");
  EXPECT_EQ(cache_.Reserve(with_key.run(), 1, kMaxBytes, Keeping::kForItsLifetime, now_),
            Memory::kNothing);
  Fail(with_key);
}

TEST_F(IdempotencyCacheTest, ALateRepetitionIsNoNewRequest) {
  Fail(BeginNumber(5, 5));

  for (const uint64_t number : {0, 3, 4}) {
    const Caller late = BeginNumber(number, 0);
    ASSERT_EQ(late.begun.status().code(), absl::StatusCode::kInvalidArgument) << number;
    EXPECT_EQ(DetailOf(late.begun.status()).argument(), "identity");
    EXPECT_THAT(std::string(late.begun.status().message()),
                testing::HasSubstr("repeat no request below 5"));
  }
  EXPECT_TRUE(BeginNumber(5, 0).is_first());
}

TEST_F(IdempotencyCacheTest, TheEndOfAnAnsweredRequestIsNotKept) {
  const Caller slow = BeginNumber(1, 1);
  ASSERT_TRUE(Reserve(slow, kKiB));
  const Caller next = BeginNumber(2, 2);  // the client waits for the first one no more

  End(slow);

  EXPECT_EQ(slow.ends->size(), 1u);
  EXPECT_EQ(cache_.entries().OfSlot(0), 0u);
  Fail(next);
}

TEST_F(IdempotencyCacheTest, AClientIsRememberedForALifetimeAfterItsLastUse) {
  const Caller long_run = BeginNumber(1, 1);
  ASSERT_TRUE(Reserve(long_run, kKiB));
  now_ += absl::Minutes(25);
  Begin("another", 0, /*tenant=*/1);  // looks for what has expired
  End(long_run);
  now_ += absl::Minutes(10) - absl::Seconds(1);
  EXPECT_NE(BeginNumber(1, 1).kept(), nullptr);

  now_ += absl::Minutes(10);

  Fail(BeginNumber(9, 0, "another client", /*tenant=*/2));
  EXPECT_EQ(cache_.entries().OfSlot(0), 0u);
  EXPECT_EQ(cache_.bytes().OfSlot(0), 0u);
  EXPECT_TRUE(BeginNumber(1, 0).is_first());  // as new
}

TEST_F(IdempotencyCacheTest, ClientsTakeMemoryOfTheirTenantsShareOnly) {
  int clients = 0;
  absl::Status status;
  while (status.ok() && clients < 1000) {
    const Caller caller = BeginNumber(1, 1, absl::StrCat("client ", clients));
    status = caller.begun.status();
    if (status.ok()) Fail(caller);
    clients += status.ok();
  }
  EXPECT_EQ(clients, static_cast<int>(kMaxBytes / kKiB));
  EXPECT_EQ(ReasonOf(status), "tenant_memory");
  EXPECT_EQ(cache_.unremembered().OfSlot(0), 1u);
  EXPECT_EQ(cache_.used_bytes(), kMaxBytes);
  now_ += absl::Minutes(10);
  EXPECT_TRUE(BeginNumber(1, 1, "new").is_first());
}

TEST_F(IdempotencyCacheTest, OfManyAtOnceOneRunsAndAllAreTold) {
  constexpr int kCallers = 8;
  std::atomic<int> first = 0;
  std::atomic<int> told = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kCallers; ++i) {
    threads.emplace_back([&] {
      const auto begun = cache_.Begin(
          {.tenant = 0, .weight = 1, .key = "key", .digest = {}},
          std::make_shared<CallState>(absl::InfiniteFuture()),
          [&](const RequestEnd& end) { told += end.status.ok(); }, now_);
      if (begun->answer != nullptr) ++told;
      if (!begun->is_first) return;
      ++first;
      cache_.Reserve(begun->place.run, /*results=*/1, kKiB, Keeping::kWhileThereIsRoom, now_);
      RequestEnd end;
      end.answer = std::make_shared<const RequestAnswer>();
      cache_.End(begun->place.run, end, now_);
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(first, 1);
  EXPECT_EQ(told, kCallers);
}

}  // namespace
}  // namespace opserve::server
