// What a run is estimated to cost, where it is waited for in between, and what its run teaches.
#include "server/schedule/lanes/run_costs.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/native/native_request.h"
#include "server/program/bind_program.h"
#include "server/program/contiguous_copies.h"
#include "server/schedule/policy/cost_model.h"
#include "tests/unit/server/laid_out_operators.h"
#include "tests/unit/server/lane_fixture.h"

namespace opserve::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kRows = 3;
constexpr int64_t kColumns = 2;

// Calls whose view is made contiguous by a copy on the device, which costs, too.
class RunCostsTest : public LaneFixture {
 protected:
  void TearDown() override {
    my_plans_.reset();
    LaneFixture::TearDown();
  }

  // `count` subtractions, of a transposed view or of the plain tensor.
  ProgramCall Make(int count, bool is_transposed) {
    v1::ExecuteRequest request;
    for (int i = 0; i < count; ++i) {
      const View view =
          is_transposed ? View{{kColumns, kRows}, {1, kColumns}} : View{{kColumns, kRows}};
      AddSub(view, &request)->set_payload(0);
      request.add_results()->set_invocation(static_cast<uint32_t>(i));
    }
    auto bound = BindProgram(TranslateProgram(request), {payload_.size()}, table_, ProgramLimits(),
                             NoResident);
    EXPECT_TRUE(bound.ok()) << bound.status();
    return *std::move(bound);
  }

  CostModel::Estimate CostOf(int count, bool is_transposed) {
    ProgramCall call = Make(count, is_transposed);
    return EstimateCost(costs_, &call);
  }
  std::vector<uint32_t> SlicesOf(int count, bool is_transposed) {
    ProgramCall call = Make(count, is_transposed);
    EstimateCost(costs_, &call);
    return call.slice_ends;
  }

  CostKey SubKey() { return Make(1, true).program->invocations[0].cost_key(); }
  CostKey CopyKey() { return Make(1, true).program->copies[0].call.cost_key(); }
  void Learn(const CostKey& key, absl::Duration took) {
    for (int i = 0; i < 4; ++i) costs_.Record(key.op, key.dtype, key.work, took);
  }
  CostModel::Estimate Estimate(const CostKey& key) const {
    return costs_.EstimateFor(key.op, key.dtype, key.work);
  }

  const OperatorTable table_ = LaidOutOperators(acl_);
  PlanCacheCounters my_counters_{table_.operators().size()};
  std::unique_ptr<PlanCache> my_plans_ = std::make_unique<PlanCache>(acl_, 8, my_counters_);
  CostModel costs_{{.operators = static_cast<uint32_t>(table_.operators().size()),
                    .dtypes = v1::DataType_ARRAYSIZE}};
  const std::string payload_ = std::string(kRows * kColumns * sizeof(float), '\0');
};

TEST_F(RunCostsTest, ACopyIsPartOfTheEstimate) {
  Learn(SubKey(), absl::Milliseconds(10));
  EXPECT_EQ(CostOf(1, false).time, absl::Milliseconds(10));
  EXPECT_EQ(CostOf(1, false).samples, 4u);
  // One that never ran leaves the whole unknown.
  EXPECT_EQ(CostOf(1, true).samples, 0u);

  Learn(CopyKey(), absl::Milliseconds(30));

  EXPECT_EQ(CostOf(1, false).time, absl::Milliseconds(10));
  EXPECT_EQ(CostOf(1, true).time, absl::Milliseconds(40));
  EXPECT_EQ(CostOf(3, true).time, absl::Milliseconds(120));
  EXPECT_EQ(CostOf(3, true).samples, 4u);
}

TEST_F(RunCostsTest, ASliceHasItsInvocationsWithTheirCopies) {
  Learn(SubKey(), absl::Milliseconds(10));
  EXPECT_THAT(SlicesOf(3, false), IsEmpty());
  // Each copy is unknown, and so each invocation is waited for alone.
  EXPECT_THAT(SlicesOf(3, true), ElementsAre(1, 2));

  Learn(CopyKey(), absl::Milliseconds(12));

  // 22 ms each, of at most 50.
  EXPECT_THAT(SlicesOf(5, true), ElementsAre(2, 4));
  EXPECT_THAT(SlicesOf(5, false), IsEmpty());
}

TEST_F(RunCostsTest, ARunTeachesCopiesAndInvocationsInProportion) {
  Learn(SubKey(), absl::Seconds(10));
  Learn(CopyKey(), absl::Seconds(30));
  ProgramCall call = Make(1, true);
  EstimateCost(costs_, &call);
  LaneContext lane{*lane_, *my_plans_, *pinned_, limits_, timeout_};
  StageClock clock;
  const CallState state(absl::Now() + absl::Seconds(60));
  const std::vector<codec::Payload> payloads = {{payload_.size(), {payload_}}};

  const absl::Time start = absl::Now();
  ProgramRun run(call, payloads, state, /*tenant=*/0, lane, clock);
  ASSERT_TRUE(run.Queue());
  ASSERT_TRUE(run.Finish().ok());
  RecordRun(call, start, run.slice_waits(), &costs_);

  // Far less than estimated: 4 of 5 parts of the old mean are left, and nearly nothing is added.
  for (const auto& [key, before] :
       {std::pair(SubKey(), absl::Seconds(10)), std::pair(CopyKey(), absl::Seconds(30))}) {
    EXPECT_EQ(Estimate(key).samples, 5u);
    EXPECT_NEAR(absl::FDivDuration(Estimate(key).time, before), 0.8, 0.1);
  }
}

}  // namespace
}  // namespace opserve::server
