// Several captured runs of one program: how many there are, and what they have in common.
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/unit/server/captured_runs_fixture.h"

namespace opserve::server {
namespace {

using CapturesPerProgramTest = CapturedRunsFixture;

TEST_F(CapturesPerProgramTest, AsManyLanesReplayAtOnceAsAProgramHasCapturedRuns) {
  const std::unique_ptr<StreamLane> other_lane = *StreamLane::Create(*device_, 1);
  PlanCache other_plans(acl_, 8, counters_);
  for (const int64_t most : {1, 2}) {
    SCOPED_TRACE(most);
    captured_ = NewRuns(1 << 20, static_cast<size_t>(most));
    Prepare(3);
    Warm();
    const uint64_t bytes = booked_;
    const ProgramCall bound = Bind();
    const std::vector<float> ones(kNumElements, 1);
    const std::vector<codec::Payload> payloads = PayloadsOf(ones);
    const CallState call(absl::InfiniteFuture());
    StageClock clock;
    LaneContext lane{*other_lane, other_plans, *pinned_, limits_, timeout_};
    lane.captured = captured_.get();
    ProgramRun replaying(bound, payloads, call, /*tenant=*/0, lane, clock);
    ASSERT_TRUE(replaying.Queue());

    const Outcome second = Run(2);
    const Outcome third = Run(3);

    ExpectSum(second, 106);
    EXPECT_FALSE(second.is_replayed);
    ExpectSum(third, 109);
    EXPECT_EQ(third.is_replayed, most == 2);
    EXPECT_EQ(third.charged, most == 2 ? 1 : 3);
    EXPECT_EQ(captured_->runs(), most);
    EXPECT_EQ(booked_, static_cast<uint64_t>(most) * bytes);
    EXPECT_EQ(captured_->bytes(), static_cast<int64_t>(booked_));
    const auto first = replaying.Finish();
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_TRUE(first->is_replayed);
    EXPECT_EQ(static_cast<const float*>(first->outputs[0].data.data())[kNumElements - 1], 103);
    EXPECT_EQ(captured_->replays(), static_cast<uint64_t>(most));
    EXPECT_TRUE(Run(1).is_replayed);
    EXPECT_EQ(captured_->results(CapturedRuns::kCaptured), static_cast<uint64_t>(most));

    captured_->DropAll(CapturedRuns::kDrained);

    EXPECT_EQ(captured_->ends(CapturedRuns::kDrained), static_cast<uint64_t>(most));
    EXPECT_EQ(captured_->runs(), 0);
    EXPECT_EQ(captured_->bytes(), 0);
    EXPECT_EQ(booked_, 0u);
    captured_->DestroyEnded();
    EXPECT_EQ(HostCount(OPSERVE_HOST_GRAPHS), 0);
  }
}

TEST_F(CapturesPerProgramTest, OneMoreOfAProgramIsCapturedWithinTheLimitsOnly) {
  captured_ = NewRuns(1 << 20);
  Prepare(3);
  Warm();
  const auto bytes = static_cast<uint64_t>(captured_->bytes());
  const struct {
    const char* name;
    uint64_t max_bytes;
    bool has_room;
    CapturedRuns::Result result;
  } kCases[] = {
      {"the device's", 2 * bytes - 1, true, CapturedRuns::kFull},
      {"the tenant's", 2 * bytes, false, CapturedRuns::kTenantFull},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    captured_ = NewRuns(c.max_bytes, 2);
    Prepare(3);
    Warm();
    const ProgramCall call = Bind();
    std::unique_ptr<CapturedRun> taken = captured_->Take(call, absl::Now());
    ASSERT_NE(taken, nullptr);
    has_room_ = c.has_room;
    const Outcome launched = Run(1);
    has_room_ = true;
    ExpectSum(launched, 103);
    EXPECT_FALSE(launched.is_replayed);
    EXPECT_EQ(captured_->results(c.result), 1u);
    EXPECT_EQ(captured_->runs(), 1);
    EXPECT_EQ(booked_, bytes);
    captured_->Put(call, std::move(taken), absl::Now());
    EXPECT_TRUE(Run(1).is_replayed);
  }
}

TEST_F(CapturesPerProgramTest, AllOfAProgramGiveTheirMemoryBack) {
  captured_ = NewRuns(1 << 20, 2);
  Prepare(3);
  Warm(2);
  const ProgramCall call = Bind();
  std::unique_ptr<CapturedRun> taken = captured_->Take(call, absl::Now());
  ASSERT_NE(taken, nullptr);
  const absl::Time now = absl::Now();
  EXPECT_TRUE(captured_->GiveMemoryBack(/*tenant=*/0, now));
  EXPECT_EQ(booked_, 0u);
  EXPECT_EQ(captured_->runs(), 1) << "one is in use";
  EXPECT_FALSE(captured_->IsDue(call, now + CapturedRuns::kPause)) << "it has its memory yet";
  captured_->Put(call, std::move(taken), now);
  EXPECT_EQ(captured_->runs(), 0);
  EXPECT_EQ(captured_->bytes(), 0);
  EXPECT_EQ(captured_->ends(CapturedRuns::kMemory), 2u);
  EXPECT_TRUE(captured_->IsDue(call, now + CapturedRuns::kPause)) << "one pause for both";
}

TEST_F(CapturesPerProgramTest, ContentsThatSeveralLoseAreOneSetback) {
  constexpr int64_t kRuns = CapturedRuns::kMostSetbacks;
  for (const bool is_found_by_a_run : {true, false}) {
    SCOPED_TRACE(is_found_by_a_run);
    captured_ = NewRuns(1 << 20, kRuns);
    weights_ = NewTensor(100);
    Prepare(3);
    Warm(kRuns);
    weights_ = NewTensor(7);
    if (!is_found_by_a_run) captured_->DropUnusable(absl::Now());
    ExpectSum(Run(1), 10);
    EXPECT_EQ(captured_->ends(CapturedRuns::kContents), static_cast<uint64_t>(kRuns));
    EXPECT_EQ(captured_->runs(), 1);
    EXPECT_TRUE(Run(1).is_replayed);
  }
}

// Replays of the others would have it tried again and again.
TEST_F(CapturesPerProgramTest, FailuresBesideAnotherCapturedRunPauseCaptures) {
  for (const bool is_captured : {false, true}) {
    SCOPED_TRACE(is_captured);
    captured_ = NewRuns(1 << 20, 3);
    Prepare(3);
    Warm();
    const ProgramCall call = Bind();
    absl::Time now = absl::Now();
    absl::Duration pause = CapturedRuns::kPause;
    for (uint32_t i = 0; i < CapturedRuns::kMostSetbacks + 2; ++i) {
      std::unique_ptr<CapturedRun> taken = captured_->Take(call, absl::Now());
      // Two fail together.
      std::vector<std::unique_ptr<CapturedRun>> attempts;
      for (int k = 0; k < 2; ++k) {
        attempts.push_back(captured_->Begin(call, /*tenant=*/0, kPayloadBytes, now));
        ASSERT_NE(attempts.back(), nullptr) << i;
      }
      for (std::unique_ptr<CapturedRun>& run : attempts) {
        if (is_captured) {
          captured_->Drop(call, std::move(run), CapturedRuns::kFailed, now);
        } else {
          captured_->GiveUp(call, std::move(run), now);
        }
      }
      EXPECT_FALSE(captured_->IsDue(call, now + pause - absl::Milliseconds(1))) << i;
      now += pause;
      EXPECT_TRUE(captured_->IsDue(call, now)) << i;
      pause *= 2;
      captured_->Put(call, std::move(taken), now);
    }
    EXPECT_EQ(captured_->runs(), 1);
    EXPECT_EQ(booked_, static_cast<uint64_t>(captured_->bytes()));
  }
}

TEST_F(CapturesPerProgramTest, ContentsThatGoBesideAnotherCapturedRunPauseCaptures) {
  for (const bool is_found_by_a_run : {true, false}) {
    SCOPED_TRACE(is_found_by_a_run);
    captured_ = NewRuns(1 << 20, 2);
    weights_ = NewTensor(100);
    Prepare(3);
    Warm();
    const ProgramCall call = Bind();
    std::unique_ptr<CapturedRun> taken = captured_->Take(call, absl::Now());
    weights_ = NewTensor(7);
    ExpectSum(Run(1), 10);
    ASSERT_EQ(captured_->runs(), 2) << "other tensors, captured besides";
    weights_ = NewTensor(8);
    const absl::Time now = absl::Now();
    if (is_found_by_a_run) {
      EXPECT_EQ(captured_->Take(Bind(), now), nullptr);
    } else {
      captured_->DropUnusable(now);
    }
    EXPECT_EQ(captured_->ends(CapturedRuns::kContents), 1u);
    EXPECT_EQ(captured_->runs(), 1);
    EXPECT_FALSE(captured_->IsDue(call, now + CapturedRuns::kPause - absl::Milliseconds(1)));
    EXPECT_TRUE(captured_->IsDue(call, now + CapturedRuns::kPause));
    captured_->Put(call, std::move(taken), now);
  }
}

TEST_F(CapturesPerProgramTest, AnUnusedOneOfABusyProgramMakesRoom) {
  captured_ = NewRuns(2 * kPayloadBytes, 2);
  Prepare(3);
  const ProgramCall busy = Bind();
  Prepare(4);
  const ProgramCall other = Bind();
  captured_->NoteLaunched(busy);
  captured_->NoteLaunched(other);
  const absl::Time start = absl::Now();
  std::unique_ptr<CapturedRun> first = captured_->Begin(busy, 0, kPayloadBytes, start);
  std::unique_ptr<CapturedRun> second = captured_->Begin(busy, 0, kPayloadBytes, start);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  const CapturedRun* const used = first.get();
  captured_->Put(busy, std::move(first), start);
  captured_->Put(busy, std::move(second), start);
  const absl::Time later = start + CapturedRuns::kLongUnused;
  std::unique_ptr<CapturedRun> taken = captured_->Take(busy, later);
  EXPECT_EQ(taken.get(), used);
  captured_->Put(busy, std::move(taken), later);

  std::unique_ptr<CapturedRun> third = captured_->Begin(other, 0, kPayloadBytes, later);

  ASSERT_NE(third, nullptr);
  captured_->Put(other, std::move(third), later);
  EXPECT_EQ(captured_->ends(CapturedRuns::kMemory), 1u);
  EXPECT_EQ(booked_, 2 * kPayloadBytes);
  taken = captured_->Take(busy, later);
  EXPECT_EQ(taken.get(), used);
  captured_->Put(busy, std::move(taken), later);
}

}  // namespace
}  // namespace opserve::server
