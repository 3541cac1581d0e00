#include <cstring>

#include "gmock/gmock.h"
#include "tests/unit/server/error_detail.h"
#include "tests/unit/server/lane_fixture.h"

namespace opserve::server {
namespace {

// Runs whose first half must not wait.
class ProgramRunTest : public LaneFixture {
 protected:
  LaneContext StagedContext() {
    LaneContext staged = context();
    staged.staging = absl::MakeSpan(staging_);
    staged.may_wait = false;
    return staged;
  }

  // Ones as RunOnes makes them.
  struct Attempt {
    bool started = false;
    absl::StatusOr<ProgramResult> result = absl::UnknownError("not started");
  };
  Attempt TryOnes(int64_t count, absl::Time deadline = absl::InfiniteFuture()) {
    const ProgramCall program = CallOf(OnesProgram(count));
    const std::vector<codec::Payload> payloads = Payloads(count);
    const CallState call(deadline);
    StageClock clock;
    LaneContext staged = StagedContext();
    ProgramRun run(program, payloads, call, /*tenant=*/0, staged, clock);
    Attempt attempt;
    attempt.started = run.Queue();
    if (attempt.started) attempt.result = run.Finish();
    return attempt;
  }

  std::vector<char> staging_ = std::vector<char>(16 << 10);
};

TEST_F(ProgramRunTest, StartsWithWhatThePoolsHaveAndGivesTheSameBits) {
  EXPECT_FALSE(TryOnes(1000).started) << "nothing is free yet";
  const auto usual = RunOnes(1000);
  ASSERT_TRUE(IsAllOnes(usual, 1000));

  const Attempt attempt = TryOnes(1000);

  ASSERT_FALSE(attempt.started) << "its result has the only block";
}

TEST_F(ProgramRunTest, RunsOnceABlockOfThatSizeIsBack) {
  ASSERT_TRUE(IsAllOnes(RunOnes(1000), 1000));
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);

  const Attempt attempt = TryOnes(1000);

  ASSERT_TRUE(attempt.started);
  EXPECT_TRUE(IsAllOnes(attempt.result, 1000)) << attempt.result.status();
  EXPECT_EQ(attempt.result->copied_to_device_bytes, 12000u);
  EXPECT_EQ(attempt.result->copied_from_device_bytes, 4000u);
  EXPECT_EQ(HostCount(OPSERVE_HOST_LAUNCHES), launches + 1);
}

TEST_F(ProgramRunTest, WhatDoesNotFitTheStagingBufferIsNotStarted) {
  ASSERT_TRUE(IsAllOnes(RunOnes(2000), 2000));
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  EXPECT_FALSE(TryOnes(2000).started);
  EXPECT_EQ(HostCount(OPSERVE_HOST_LAUNCHES), launches);
}

TEST_F(ProgramRunTest, APlanIsCountedOnceThoughThereWasNoMemoryAtFirst) {
  const PlanCacheCounters::Operator& counted =
      counters_.of[operators_.Find("L1LossBackward")->index];
  ASSERT_FALSE(TryOnes(1000).started);
  EXPECT_EQ(counted.hits + counted.misses, 0u);

  ASSERT_TRUE(IsAllOnes(RunOnes(1000), 1000));

  EXPECT_EQ(counted.hits + counted.misses, 1u);
}

TEST_F(ProgramRunTest, PayloadsGoThroughTheStagingBufferWhereTheyFit) {
  LaneContext lane = StagedContext();
  lane.may_wait = true;
  for (const auto& [count, copies] : {std::pair(1000, 1), std::pair(2000, 3)}) {
    const CallState call(absl::InfiniteFuture());
    StageClock clock;
    const uint64_t before = HostCalls("aclrtMemcpyAsync");

    const auto result =
        RunProgram(CallOf(OnesProgram(count)), Payloads(count), call, 0, lane, clock);

    EXPECT_TRUE(IsAllOnes(result, count)) << result.status();
    EXPECT_EQ(HostCalls("aclrtMemcpyAsync") - before, static_cast<uint64_t>(copies));
    EXPECT_EQ(result->copied_to_device_bytes, 12u * count);
  }
}

TEST_F(ProgramRunTest, LateOnesAreNotLaunched) {
  ASSERT_TRUE(IsAllOnes(RunOnes(1000), 1000));
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);

  const Attempt attempt = TryOnes(1000, absl::InfinitePast());

  EXPECT_EQ(attempt.result.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(HostCount(OPSERVE_HOST_LAUNCHES), launches);
}

TEST_F(ProgramRunTest, AFailingKernelFailsItsRunAlone) {
  ASSERT_TRUE(IsAllOnes(RunOnes(1000), 1000));
  InjectFaults("kernel=*,code=507015");

  const Attempt failed = TryOnes(1000);

  ASSERT_TRUE(failed.started);
  EXPECT_EQ(failed.result.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(DetailOf(failed.result.status()).operator_(), "L1LossBackward");
  EXPECT_TRUE(IsAllOnes(RunOnes(1000), 1000));
  const Attempt next = TryOnes(1000);
  EXPECT_TRUE(IsAllOnes(next.result, 1000)) << next.result.status();
}

}  // namespace
}  // namespace opserve::server
