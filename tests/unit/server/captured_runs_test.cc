// Captured runs on one lane: what is replayed, what is captured anew, and what ends a capture.
#include "server/run/captured_runs.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/unit/server/captured_runs_fixture.h"

namespace opserve::server {
namespace {

using ::testing::Each;
using CapturedRunsTest = CapturedRunsFixture;

TEST_F(CapturedRunsTest, TheThirdRunIsReplayedAsOneLaunch) {
  constexpr int kAdds = 500;
  Prepare(kAdds);
  const Outcome first = Run(1);
  ExpectSum(first, 600);
  EXPECT_EQ(first.charged, kAdds);
  ExpectSum(Run(2), 1100);
  EXPECT_EQ(captured_->results(CapturedRuns::kCaptured), 1u);
  EXPECT_GT(captured_->bytes(), 0);
  EXPECT_EQ(booked_, static_cast<uint64_t>(captured_->bytes()));
  const uint64_t stage_ones = HostCalls("aclnnAddGetWorkspaceSize");
  for (const float value : {3.0f, 0.25f, -1.0f}) {
    const Outcome replayed = Run(value);
    ExpectSum(replayed, 100 + value * kAdds);
    EXPECT_TRUE(replayed.is_replayed);
    EXPECT_EQ(replayed.charged, 1);
    EXPECT_GE(first.charged, 10 * replayed.charged);
  }
  EXPECT_EQ(HostCalls("aclnnAddGetWorkspaceSize"), stage_ones);
  EXPECT_EQ(captured_->replays(), 3u);
}

TEST_F(CapturedRunsTest, AReplacedTensorKeepsItsPlace) {
  for (const Sum use : {Sum::kReplaces, Sum::kReplacesDonated}) {
    SCOPED_TRACE(use == Sum::kReplaces ? "replaced" : "donated, too");
    captured_ = NewRuns(1 << 20);
    weights_ = NewTensor(100);
    Prepare(2, use);
    for (int run = 1; run <= 5; ++run) {
      const void* const place = weights_->content->memory.data();
      const Outcome outcome = Run(1);
      ExpectSum(outcome, 100 + 2 * static_cast<float>(run));
      EXPECT_THAT(ElementsOf(*weights_), Each(100 + 2 * static_cast<float>(run)));
      EXPECT_EQ(outcome.is_replayed, run > 2) << run;
      const bool has_moved = weights_->content->memory.data() != place;
      EXPECT_FALSE(has_moved && run > 1) << run;
    }
  }
}

TEST_F(CapturedRunsTest, AKeptOutputGetsMemoryOfItsOwn) {
  Prepare(2, Sum::kKept);
  std::vector<std::shared_ptr<ResidentTensor>> kept;
  for (const float value : {1.0f, 2.0f, 3.0f, 4.0f}) {
    EXPECT_EQ(Run(value).is_replayed, value > 2);
    kept.push_back(kept_);
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    EXPECT_THAT(ElementsOf(*kept[i]), Each(102 + 2 * static_cast<float>(i)));
  }
}

// It changes when the run succeeds, and not before.
TEST_F(CapturedRunsTest, AFailedReplayLeavesAReplacedTensorAsItWas) {
  Prepare(3, Sum::kReplaces);
  Warm();
  InjectFaults("kernel=aclnnAdd,code=507015,nth=3");
  EXPECT_FALSE(Run(1).status.ok());
  ClearFaults();
  EXPECT_FALSE(weights_->is_broken);
  EXPECT_THAT(ElementsOf(*weights_), Each(106));
  ExpectSum(Run(1), 109);
}

TEST_F(CapturedRunsTest, ATensorThatAFailedReplayMayHaveChangedIsBroken) {
  const struct {
    Sum use;
    const char* fault;
  } kCases[] = {
      {Sum::kReplaces, "call=aclrtMemcpy,code=107002,nth=2"},  // behind that of the result
      {Sum::kReplacesDonated, "kernel=aclnnAdd,code=507015,nth=3"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.fault);
    captured_ = NewRuns(1 << 20);
    weights_ = NewTensor(100);
    Prepare(3, c.use);
    Warm();
    InjectFaults(c.fault);
    EXPECT_FALSE(Run(1).status.ok());
    ClearFaults();
    EXPECT_TRUE(weights_->is_broken);
    EXPECT_FALSE(Run(1).status.ok());
  }
}

// A reader of the old content, such as a download, must not see the new one.
TEST_F(CapturedRunsTest, ATensorThatIsReadMeanwhileIsReplacedElsewhere) {
  Prepare(2, Sum::kReplaces);
  Warm();
  std::shared_ptr<ResidentContent> reader = weights_->content;
  const Outcome launched = Run(1);
  ExpectSum(launched, 106);
  EXPECT_FALSE(launched.is_replayed);
  EXPECT_NE(weights_->content, reader);
  reader.reset();
  // Its memory has gone, so the next run is captured anew.
  ExpectSum(Run(1), 108);
  EXPECT_EQ(captured_->ends(CapturedRuns::kContents), 1u);
  EXPECT_TRUE(Run(1).is_replayed);
}

TEST_F(CapturedRunsTest, OtherTensorsAreNotReplayedWith) {
  Prepare(2);
  Warm();
  const std::shared_ptr<ResidentTensor> first = std::exchange(weights_, NewTensor(7));
  for (int i = 0; i < 2; ++i) {
    const Outcome other = Run(1);
    ExpectSum(other, 9);
    EXPECT_FALSE(other.is_replayed);
  }
  const std::shared_ptr<ResidentTensor> second = std::exchange(weights_, first);
  const Outcome again = Run(1);
  ExpectSum(again, 102);
  EXPECT_TRUE(again.is_replayed) << "its tensors are where they were";
}

TEST_F(CapturedRunsTest, ProgramsWhoseTensorsKeepMovingLaunch) {
  Prepare(2);
  Warm();
  for (uint32_t i = 0; i < CapturedRuns::kMostSetbacks + 2; ++i) {
    weights_ = NewTensor(static_cast<float>(i));
    ExpectSum(Run(1), static_cast<float>(i) + 2);
  }
  EXPECT_EQ(captured_->results(CapturedRuns::kCaptured), CapturedRuns::kMostSetbacks);
  EXPECT_EQ(captured_->ends(CapturedRuns::kContents), CapturedRuns::kMostSetbacks);
  EXPECT_EQ(captured_->runs(), 0);
}

// The fault comes when the second run captures, or the third replays.
TEST_F(CapturedRunsTest, AFailedCaptureLaunches) {
  const struct {
    const char* function;
    int nth;
    int setbacks;
    bool is_captured;  // by the second run after all
  } kCases[] = {
      {"aclmdlRICaptureBegin", 1, 1, false},
      {"aclnnAdd", 1, 1, false},
      {"aclnnAdd", 2, 1, false},
      {"aclmdlRICaptureEnd", 1, 0, true},
      {"aclrtCreateStream", 1, 1, false},
      {"aclrtDestroyStream", 1, 0, true},
      {"aclmdlRIExecuteAsync", 1, 1, false},
      {"aclmdlRIExecuteAsync", 2, 0, true},
  };
  for (const auto& c : kCases) {
    for (const int code : {107030, 207000, 507010, 507903}) {
      SCOPED_TRACE(absl::StrCat(c.function, " ", c.nth, " ", code));
      Prepare(3);
      captured_ = NewRuns(1 << 20);
      ExpectSum(Run(1), 103);
      InjectFaults(absl::StrCat("call=", c.function, ",nth=", c.nth, ",code=", code));
      ExpectSum(Run(2), 106);
      EXPECT_EQ(captured_->runs(), c.is_captured);
      EXPECT_EQ(captured_->results(CapturedRuns::kNotCaptured), static_cast<uint64_t>(c.setbacks));
      ExpectSum(Run(3), 109);
      ClearFaults();
      ExpectSum(Run(4), 112);
      ExpectSum(Run(5), 115);
      const Outcome replayed = Run(6);
      ExpectSum(replayed, 118);
      EXPECT_TRUE(replayed.is_replayed);
      EXPECT_EQ(device_->state(), DeviceState::kReady);
    }
  }
}

TEST_F(CapturedRunsTest, ACaptureThatKeepsFailingIsGivenUp) {
  Prepare(3);
  InjectFaults("call=aclmdlRICaptureBegin,code=207000,count=100");
  for (int i = 0; i < 6; ++i) ExpectSum(Run(1), 103);
  EXPECT_EQ(captured_->results(CapturedRuns::kNotCaptured), CapturedRuns::kMostSetbacks);
  EXPECT_EQ(booked_, 0u);
}

// It leaves a stream that takes nothing, which is not the lane's, and no second one.
TEST_F(CapturedRunsTest, ACaptureThatCannotBeEndedLaunches) {
  Prepare(3, Sum::kReplacesDonated);
  ExpectSum(Run(1), 103);
  const void* const stream = lane_->stream();
  const int64_t streams = HostCount(OPSERVE_HOST_STREAMS);
  InjectFaults("call=aclmdlRICaptureEnd,code=507899,count=100");
  for (const float sum : {106.0f, 109.0f, 112.0f}) ExpectSum(Run(1), sum);
  ClearFaults();
  ExpectSum(Run(1), 115);
  EXPECT_EQ(lane_->stream(), stream);
  EXPECT_EQ(HostCount(OPSERVE_HOST_STREAMS), streams + 1);
  EXPECT_EQ(captured_->results(CapturedRuns::kNotCaptured), 1u);
  captured_->DropAll(CapturedRuns::kClosed);
  for (const float sum : {118.0f, 121.0f}) ExpectSum(Run(1), sum);
  EXPECT_TRUE(Run(1).is_replayed);
}

TEST_F(CapturedRunsTest, AFailedReplayEndsTheCapture) {
  Prepare(3);
  Warm();
  InjectFaults("kernel=aclnnAdd,code=507015");
  EXPECT_FALSE(Run(1).status.ok());
  EXPECT_EQ(captured_->ends(CapturedRuns::kFailed), 1u);
  EXPECT_EQ(captured_->runs(), 0);
  EXPECT_EQ(booked_, 0u);
  ExpectSum(Run(1), 103);
  EXPECT_TRUE(Run(1).is_replayed);
}

TEST_F(CapturedRunsTest, ACallThatHasEndedLeavesTheCaptureAlone) {
  Prepare(3);
  Warm();
  const CallState late(absl::InfinitePast());
  EXPECT_FALSE(Run(1, late).status.ok());
  EXPECT_TRUE(Run(1).is_replayed);
}

TEST_F(CapturedRunsTest, RunsThatCannotBeCapturedLaunch) {
  const struct {
    const char* name;
    std::function<void()> change;
  } kCases[] = {
      {"off", [this] { captured_ = NewRuns(0); }},
      {"too large", [this] { captured_ = NewRuns(kPayloadBytes); }},
      {"no room for the tenant", [this] { has_room_ = false; }},
      {"no functions", [this] { acl_.aclmdlRICaptureBegin = nullptr; }},
      {"executors that run once", [this] { acl_.aclSetAclOpExecutorRepeatable = nullptr; }},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto restore = absl::MakeCleanup(
        [this, begin = acl_.aclmdlRICaptureBegin, repeat = acl_.aclSetAclOpExecutorRepeatable] {
          acl_.aclmdlRICaptureBegin = begin;
          acl_.aclSetAclOpExecutorRepeatable = repeat;
          has_room_ = true;
        });
    captured_ = NewRuns(1 << 20);
    plans_ = std::make_unique<PlanCache>(acl_, 8, counters_);
    c.change();
    Prepare(3);
    const uint64_t captures = HostCalls("aclmdlRICaptureBegin");
    for (int i = 0; i < 4; ++i) ExpectSum(Run(1), 103);
    EXPECT_EQ(HostCalls("aclmdlRICaptureBegin"), captures);
    EXPECT_EQ(captured_->runs(), 0);
    EXPECT_EQ(booked_, 0u);
  }
}

TEST_F(CapturedRunsTest, OneInvocationIsNotCaptured) {
  Prepare(1);
  for (int i = 0; i < 4; ++i) ExpectSum(Run(1), 101);
  EXPECT_EQ(captured_->results(CapturedRuns::kCaptured), 0u);
}

TEST_F(CapturedRunsTest, MemoryGoesBackWhenItIsWanted) {
  Prepare(3);
  Warm();
  const uint64_t allocated = device_->memory().statistics().requested_bytes;
  const auto bytes = static_cast<uint64_t>(captured_->bytes());
  EXPECT_FALSE(captured_->GiveMemoryBack(/*tenant=*/1, absl::Now())) << "it is another tenant's";
  EXPECT_TRUE(captured_->GiveMemoryBack(/*tenant=*/0, absl::Now()));
  EXPECT_EQ(device_->memory().statistics().requested_bytes, allocated - bytes);
  EXPECT_EQ(booked_, 0u);
  EXPECT_FALSE(captured_->GiveMemoryBack(std::nullopt, absl::Now()));
  ExpectSum(Run(1), 103);
  EXPECT_EQ(captured_->runs(), 0) << "not at once again";
  EXPECT_EQ(captured_->ends(CapturedRuns::kMemory), 1u);
  captured_->DestroyEnded();
}

// Its tenant may take memory as if nothing had been captured.
TEST_F(CapturedRunsTest, WhatIsBookedForARunThatIsInUseGoesBackAtOnce) {
  Prepare(3);
  Warm();
  const ProgramCall call = Bind();
  std::unique_ptr<CapturedRun> taken = captured_->Take(call, absl::Now());
  ASSERT_NE(taken, nullptr);
  EXPECT_GT(booked_, 0u);
  EXPECT_TRUE(captured_->GiveMemoryBack(/*tenant=*/0, absl::Now()));
  EXPECT_EQ(booked_, 0u);
  EXPECT_EQ(captured_->runs(), 1) << "it is in use";
  EXPECT_FALSE(captured_->GiveMemoryBack(/*tenant=*/0, absl::Now()));
  captured_->Put(call, std::move(taken), absl::Now());
  EXPECT_EQ(captured_->runs(), 0);
  EXPECT_EQ(captured_->ends(CapturedRuns::kMemory), 1u);
}

TEST_F(CapturedRunsTest, ARunThatIsInUseEndsForTheReasonThatItHadToGo) {
  for (const CapturedRuns::End why : {CapturedRuns::kDrained, CapturedRuns::kClosed}) {
    for (const bool is_used : {true, false}) {
      SCOPED_TRACE(absl::StrCat(kCaptureEnds[why], is_used ? ", used" : ", returned"));
      captured_ = NewRuns(1 << 20);
      Prepare(3);
      Warm();
      const ProgramCall call = Bind();
      std::unique_ptr<CapturedRun> taken = captured_->Take(call, absl::Now());
      ASSERT_NE(taken, nullptr);
      captured_->DropAll(why);
      if (is_used) {
        captured_->Put(call, std::move(taken), absl::Now());
      } else {
        captured_->Return(call, std::move(taken));
      }
      EXPECT_EQ(captured_->runs(), 0);
      EXPECT_EQ(captured_->ends(why), 1u);
      EXPECT_EQ(captured_->ends(CapturedRuns::kMemory), 0u);
    }
  }
}

// A tenant that wants memory again and again does not have a program captured each second.
TEST_F(CapturedRunsTest, CapturesThatKeepGivingMemoryUpBecomeRare) {
  Prepare(3);
  Warm();
  const ProgramCall call = Bind();
  absl::Time now = absl::Now();
  const auto capture = [&] {
    std::unique_ptr<CapturedRun> run = captured_->Begin(call, /*tenant=*/0, kPayloadBytes, now);
    ASSERT_NE(run, nullptr);
    captured_->Put(call, std::move(run), now);
  };
  absl::Duration pause = CapturedRuns::kPause;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(captured_->GiveMemoryBack(std::nullopt, now));
    EXPECT_FALSE(captured_->IsDue(call, now + pause - absl::Milliseconds(1))) << i;
    now += pause;
    EXPECT_TRUE(captured_->IsDue(call, now)) << i;
    pause = std::min(2 * pause, CapturedRuns::kLongestPause);
    capture();
  }
  for (uint64_t i = 0; i < CapturedRuns::kWorthwhile; ++i) {
    captured_->Put(call, captured_->Take(call, absl::Now()), now);
  }
  EXPECT_TRUE(captured_->GiveMemoryBack(std::nullopt, now));
  EXPECT_TRUE(captured_->IsDue(call, now + CapturedRuns::kPause));
}

TEST_F(CapturedRunsTest, LaunchesOfAllCapturedRunsTogetherAreBounded) {
  constexpr size_t kAdds = 4096;
  captured_ = NewRuns(uint64_t{1} << 40);
  std::vector<std::unique_ptr<PreparedProgram>> programs;
  std::vector<ProgramCall> calls;
  for (size_t launches = 0; launches <= CapturedRuns::kMostLaunches; launches += kAdds) {
    Prepare(kAdds);
    const ProgramCall& call = calls.emplace_back(Bind());
    programs.push_back(std::move(program_));
    captured_->NoteLaunched(call);
    std::unique_ptr<CapturedRun> run =
        captured_->Begin(call, /*tenant=*/0, kPayloadBytes, absl::Now());
    EXPECT_EQ(run != nullptr, launches < CapturedRuns::kMostLaunches);
    if (run != nullptr) captured_->Put(call, std::move(run), absl::Now());
  }
  EXPECT_EQ(captured_->results(CapturedRuns::kFull), 1u);
  captured_->DropAll(CapturedRuns::kClosed);
  EXPECT_EQ(booked_, 0u);
}

TEST_F(CapturedRunsTest, AReceiptOfAReplayIsTrue) {
  for (const Sum use : {Sum::kReturned, Sum::kReplacesDonated, Sum::kKept}) {
    captured_ = NewRuns(1 << 20);
    weights_ = NewTensor(100);
    Prepare(3, use);
    const ProgramResult launched = Run(1).result;
    Run(1);
    const Outcome replayed = Run(1);
    ASSERT_TRUE(replayed.is_replayed);
    EXPECT_EQ(replayed.result.plan_hits, 3u);
    EXPECT_EQ(replayed.result.plan_misses, 0u);
    EXPECT_EQ(replayed.result.workspace_bytes, launched.workspace_bytes);
    EXPECT_EQ(replayed.result.copied_to_device_bytes, launched.copied_to_device_bytes);
    EXPECT_EQ(replayed.result.copied_from_device_bytes, launched.copied_from_device_bytes);
    EXPECT_GE(replayed.result.device_memory_bytes, launched.device_memory_bytes);
  }
}

TEST_F(CapturedRunsTest, AReleasedProgramsCaptureGoes) {
  Prepare(3);
  Warm();
  captured_->DropUnusable(absl::Now());
  EXPECT_EQ(captured_->runs(), 1);
  program_.reset();
  captured_->DropUnusable(absl::Now());
  EXPECT_EQ(captured_->runs(), 0);
  EXPECT_EQ(captured_->ends(CapturedRuns::kReleased), 1u);
}

}  // namespace
}  // namespace opserve::server
