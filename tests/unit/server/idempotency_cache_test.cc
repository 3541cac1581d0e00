// Requests with an idempotency key: who runs, who waits, what is kept and for how long.

#include "server/rpc/idempotency_cache.h"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/catalog/error.h"
#include "tests/unit/server/error_detail.h"

namespace opserve::server {
namespace {

constexpr uint64_t kKiB = 1 << 10;

// One request, from Begin on.
struct Caller {
  absl::StatusOr<IdempotencyCache::Begun> begun = absl::UnknownError("not begun");
  std::shared_ptr<CallState> run_call;
  std::shared_ptr<std::vector<ExecutionEnd>> ends = std::make_shared<std::vector<ExecutionEnd>>();

  bool is_first() const { return begun->is_first; }
  uint64_t run() const { return begun->place.run; }
  const IdempotencyCache::Answer& kept() const { return begun->answer; }
};

class IdempotencyCacheTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kMaxBytes = 64 * kKiB;

  // A request with `key` whose contents are `body`.
  Caller Begin(const std::string& key, uint8_t body = 0, uint32_t tenant = 0) {
    Caller caller;
    caller.run_call = std::make_shared<CallState>(absl::InfiniteFuture());
    RequestDigest digest = {};
    digest[0] = body;
    caller.begun = cache_.Begin(
        {.tenant = tenant, .key = key, .digest = digest}, caller.run_call,
        [ends = caller.ends](const ExecutionEnd& end) { ends->push_back(end); }, now_);
    return caller;
  }

  // Lets the run of `caller` end well; returns its answer.
  IdempotencyCache::Answer Succeed(const Caller& caller) {
    ExecutionEnd end;
    end.answer = std::make_shared<const ExecuteAnswer>();
    cache_.End(caller.run(), end, now_);
    return end.answer;
  }
  void Fail(const Caller& caller) {
    ExecutionEnd end;
    end.status = absl::InternalError("it failed");
    cache_.End(caller.run(), end, now_);
  }
  absl::Status Reserve(const Caller& caller, uint64_t bytes) {
    return cache_.Reserve(caller.run(), /*results=*/1, bytes, now_);
  }
  // A request that has run and left `bytes` of results.
  IdempotencyCache::Answer Keep(const std::string& key, uint64_t bytes) {
    const Caller caller = Begin(key);
    EXPECT_TRUE(Reserve(caller, bytes).ok());
    return Succeed(caller);
  }

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
  ASSERT_TRUE(Reserve(first, kKiB).ok());
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
  ASSERT_TRUE(Reserve(first, kKiB).ok());
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
  ASSERT_TRUE(Reserve(left, kKiB).ok());
  cache_.Leave(left.begun->place);
  const Caller next = Begin("key", /*body=*/1);
  ASSERT_TRUE(next.is_first());

  Succeed(left);  // the cancellation came too late

  EXPECT_EQ(left.ends->size(), 1u);
  EXPECT_TRUE(next.ends->empty());
  EXPECT_EQ(cache_.used_bytes(), 0u);
  const IdempotencyCache::Answer answer = Succeed(next);
  EXPECT_EQ(Begin("key", /*body=*/1).kept(), answer);
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

TEST_F(IdempotencyCacheTest, NoAnswerMayTakeMoreThanAQuarter) {
  const Caller fits = Begin("fits");
  const Caller does_not = Begin("does not");

  EXPECT_TRUE(Reserve(fits, kMaxBytes / 4).ok());
  const absl::Status status = Reserve(does_not, kMaxBytes / 4 + 1);

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(DetailOf(status).reason(), "too_large");
  EXPECT_EQ(DetailOf(status).retry_pushback_ms(), -1);
}

TEST_F(IdempotencyCacheTest, WhenFullItRefusesNewKeysAndForgetsNothing) {
  std::map<std::string, IdempotencyCache::Answer> answers;
  for (const char* key : {"a", "b", "c"}) answers[key] = Keep(key, 15 * kKiB);
  now_ += absl::Minutes(10) - absl::Seconds(3);

  const Caller refused = Begin("d");
  const absl::Status status = Reserve(refused, 15 * kKiB);

  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(DetailOf(status).reason(), "tenant_memory");
  EXPECT_EQ(DetailOf(status).retry_pushback_ms(), 3000);
  for (const auto& [key, answer] : answers) EXPECT_EQ(Begin(key).kept(), answer);
  now_ += absl::Seconds(3);
  EXPECT_TRUE(Reserve(refused, 15 * kKiB).ok());
}

TEST_F(IdempotencyCacheTest, RetryHintsHaveBounds) {
  for (const char* key : {"a", "b", "c"}) Keep(key, 15 * kKiB);
  const Caller refused = Begin("d");

  EXPECT_EQ(DetailOf(Reserve(refused, 15 * kKiB)).retry_pushback_ms(), 10'000);
  now_ += absl::Minutes(10) - absl::Milliseconds(1);
  EXPECT_EQ(DetailOf(Reserve(refused, 15 * kKiB)).retry_pushback_ms(), 10);
}

TEST_F(IdempotencyCacheTest, ResultsWithoutBytesFillItToo) {
  int kept = 0;
  absl::Status status;
  while (status.ok() && kept < 1000) {
    const Caller caller = Begin(absl::StrCat(kept));
    status = Reserve(caller, 0);
    if (status.ok()) ++kept;
  }

  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_LE(kept, 64);  // of a KiB at least
  EXPECT_GE(kept, 16);
}

TEST_F(IdempotencyCacheTest, OfManyAtOnceOneRunsAndAllAreTold) {
  constexpr int kCallers = 8;
  std::atomic<int> first = 0;
  std::atomic<int> told = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kCallers; ++i) {
    threads.emplace_back([&] {
      const auto begun = cache_.Begin(
          {.tenant = 0, .key = "key", .digest = {}},
          std::make_shared<CallState>(absl::InfiniteFuture()),
          [&](const ExecutionEnd& end) { told += end.status.ok(); }, now_);
      if (begun->answer != nullptr) ++told;
      if (!begun->is_first) return;
      ++first;
      ExecutionEnd end;
      end.answer = std::make_shared<const ExecuteAnswer>();
      cache_.End(begun->place.run, end, now_);
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(first, 1);
  EXPECT_EQ(told, kCallers);
}

}  // namespace
}  // namespace opserve::server
