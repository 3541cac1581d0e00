// What a request is estimated to cost, where it is waited for in between, and what its run teaches.
#include "server/scheduling/execution_request.h"

#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/codec/payload_message.h"
#include "server/execution/bind_program.h"
#include "server/execution/contiguous_copies.h"
#include "server/scheduling/cost_model.h"
#include "tests/unit/server/laid_out_operators.h"
#include "tests/unit/server/lane_fixture.h"

namespace opserve::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kRows = 3;
constexpr int64_t kColumns = 2;

// Calls whose view is made contiguous by a copy on the device, which costs, too.
class ExecutionRequestTest : public LaneFixture {
 protected:
  void TearDown() override {
    my_plans_.reset();
    LaneFixture::TearDown();
  }

  // `count` subtractions, of a transposed view or of the plain tensor.
  std::unique_ptr<ExecutionRequest> Make(int count, bool is_transposed) {
    v1::ExecuteRequest request;
    for (int i = 0; i < count; ++i) {
      const View view =
          is_transposed ? View{{kColumns, kRows}, {1, kColumns}} : View{{kColumns, kRows}};
      AddSub(view, &request)->set_payload(0);
      request.add_results()->set_invocation(static_cast<uint32_t>(i));
    }
    const std::string payload(kRows * kColumns * sizeof(float), '\0');
    request.add_payloads(payload);
    auto message = codec::PayloadMessage::Split(
        grpc::ByteBuffer(&AsSlice(request.SerializeAsString()), 1), /*max_payloads=*/1);
    EXPECT_TRUE(message.ok()) << message.status();
    auto bound = BindProgram(request, {payload.size()}, table_, ProgramLimits(), NoResident);
    EXPECT_TRUE(bound.ok()) << bound.status();
    return std::make_unique<ExecutionRequest>(
        *std::move(message), *std::move(bound),
        std::make_shared<CallState>(absl::Now() + absl::Seconds(60)), /*tenant=*/0,
        /*connection=*/0, Priority(), costs_, StageClock(),
        [](ExecutionRequest&, absl::StatusOr<ProgramResult>) {});
  }

  const grpc::Slice& AsSlice(const std::string& bytes) { return slices_.emplace_back(bytes); }

  CostKey SubKey() { return Make(1, true)->program().invocations[0].cost_key(); }
  CostKey CopyKey() { return Make(1, true)->program().copies[0].call.cost_key(); }
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
  std::list<grpc::Slice> slices_;
};

TEST_F(ExecutionRequestTest, ACopyIsPartOfTheEstimate) {
  Learn(SubKey(), absl::Milliseconds(10));
  EXPECT_EQ(Make(1, false)->demand().cost.time, absl::Milliseconds(10));
  EXPECT_EQ(Make(1, false)->demand().cost.samples, 4u);
  // One that never ran leaves the whole unknown.
  EXPECT_EQ(Make(1, true)->demand().cost.samples, 0u);

  Learn(CopyKey(), absl::Milliseconds(30));

  EXPECT_EQ(Make(1, false)->demand().cost.time, absl::Milliseconds(10));
  EXPECT_EQ(Make(1, true)->demand().cost.time, absl::Milliseconds(40));
  EXPECT_EQ(Make(3, true)->demand().cost.time, absl::Milliseconds(120));
  EXPECT_EQ(Make(3, true)->demand().cost.samples, 4u);
}

TEST_F(ExecutionRequestTest, ASliceHasItsInvocationsWithTheirCopies) {
  Learn(SubKey(), absl::Milliseconds(10));
  EXPECT_THAT(Make(3, false)->bound().slice_ends, IsEmpty());
  // Each copy is unknown, and so each invocation is waited for alone.
  EXPECT_THAT(Make(3, true)->bound().slice_ends, ElementsAre(1, 2));

  Learn(CopyKey(), absl::Milliseconds(12));

  // 22 ms each, of at most 50.
  EXPECT_THAT(Make(5, true)->bound().slice_ends, ElementsAre(2, 4));
  EXPECT_THAT(Make(5, false)->bound().slice_ends, IsEmpty());
}

TEST_F(ExecutionRequestTest, ARunTeachesCopiesAndInvocationsInProportion) {
  Learn(SubKey(), absl::Seconds(10));
  Learn(CopyKey(), absl::Seconds(30));
  const auto request = Make(1, true);
  LaneContext lane{*lane_, *my_plans_, *pinned_, limits_, timeout_};

  ASSERT_TRUE(request->Queue(lane));
  request->Finish();
  request->Answer();

  // Far less than estimated: 4 of 5 parts of the old mean are left, and nearly nothing is added.
  for (const auto& [key, before] :
       {std::pair(SubKey(), absl::Seconds(10)), std::pair(CopyKey(), absl::Seconds(30))}) {
    EXPECT_EQ(Estimate(key).samples, 5u);
    EXPECT_NEAR(absl::FDivDuration(Estimate(key).time, before), 0.8, 0.1);
  }
}

}  // namespace
}  // namespace opserve::server
