#include <cstring>

#include "gmock/gmock.h"
#include "tests/unit/server/error_detail.h"
#include "tests/unit/server/lane_fixture.h"

namespace opserve::server {
namespace {

class PromptRunTest : public LaneFixture {
 protected:
  LaneContext StagedContext() {
    LaneContext staged = context();
    staged.staging = absl::MakeSpan(staging_);
    return staged;
  }

  // Ones as RunOnes makes them.
  struct Attempt {
    bool started = false;
    absl::StatusOr<ProgramResult> result = absl::UnknownError("not started");
  };
  Attempt TryOnes(int64_t count, absl::Time deadline = absl::InfiniteFuture()) {
    const Program program = OnesProgram(count);
    const std::vector<codec::Payload> payloads = Payloads(count);
    const CallState call(deadline);
    StageClock clock;
    LaneContext staged = StagedContext();
    PromptRun run(program, payloads, call, /*tenant=*/0, staged, clock);
    Attempt attempt;
    attempt.started = run.Start();
    if (attempt.started) attempt.result = run.Finish();
    return attempt;
  }

  std::vector<char> staging_ = std::vector<char>(16 << 10);
};

TEST_F(PromptRunTest, StartsWithWhatThePoolsHaveAndGivesTheSameBits) {
  EXPECT_FALSE(TryOnes(1000).started) << "nothing is free yet";
  const auto usual = RunOnes(1000);
  ASSERT_TRUE(IsAllOnes(usual, 1000));

  const Attempt attempt = TryOnes(1000);

  ASSERT_FALSE(attempt.started) << "its result has the only block";
}

TEST_F(PromptRunTest, RunsOnceABlockOfThatSizeIsBack) {
  ASSERT_TRUE(IsAllOnes(RunOnes(1000), 1000));
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);

  const Attempt attempt = TryOnes(1000);

  ASSERT_TRUE(attempt.started);
  EXPECT_TRUE(IsAllOnes(attempt.result, 1000)) << attempt.result.status();
  EXPECT_EQ(attempt.result->copied_to_device_bytes, 12000u);
  EXPECT_EQ(attempt.result->copied_from_device_bytes, 4000u);
  EXPECT_EQ(HostCount(OPSERVE_HOST_LAUNCHES), launches + 1);
}

TEST_F(PromptRunTest, WhatDoesNotFitTheStagingBufferIsNotStarted) {
  ASSERT_TRUE(IsAllOnes(RunOnes(2000), 2000));
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  EXPECT_FALSE(TryOnes(2000).started);
  EXPECT_EQ(HostCount(OPSERVE_HOST_LAUNCHES), launches);
}

TEST_F(PromptRunTest, LateOnesAreNotLaunched) {
  ASSERT_TRUE(IsAllOnes(RunOnes(1000), 1000));
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);

  const Attempt attempt = TryOnes(1000, absl::InfinitePast());

  EXPECT_EQ(attempt.result.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(HostCount(OPSERVE_HOST_LAUNCHES), launches);
}

TEST_F(PromptRunTest, AFailingKernelFailsItsRunAlone) {
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
