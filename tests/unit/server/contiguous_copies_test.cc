#include "server/program/contiguous_copies.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/native/native_request.h"
#include "server/program/bind_program.h"
#include "server/run/captured_runs.h"
#include "server/run/prepared_program.h"
#include "tests/unit/server/error_detail.h"
#include "tests/unit/server/laid_out_operators.h"
#include "tests/unit/server/lane_fixture.h"

namespace opserve::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ContiguousCopiesTest : public LaneFixture {
 protected:
  void TearDown() override {
    my_plans_.reset();
    LaneFixture::TearDown();
  }

  absl::StatusOr<ProgramCall> Bind(const v1::ExecuteRequest& request,
                                   const std::vector<uint64_t>& payload_bytes) {
    return BindProgram(TranslateProgram(request), payload_bytes, table_, limits_of_programs_,
                       NoResident);
  }

  absl::StatusOr<ProgramResult> Run(const ProgramCall& call,
                                    const std::vector<std::vector<float>>& payloads,
                                    CapturedRuns* captured = nullptr) {
    if (my_plans_ == nullptr) my_plans_ = std::make_unique<PlanCache>(acl_, 8, my_counters_);
    std::vector<codec::Payload> messages;
    for (const std::vector<float>& values : payloads) {
      const size_t bytes = values.size() * sizeof(float);
      messages.push_back({bytes, {{reinterpret_cast<const char*>(values.data()), bytes}}});
    }
    StageClock clock;
    LaneContext lane{*lane_, *my_plans_, *pinned_, limits_, timeout_};
    lane.captured = captured;
    const CallState state(absl::Now() + absl::Seconds(60));
    return RunProgram(call, messages, state, /*tenant=*/0, lane, clock);
  }

  static std::vector<float> ValuesOf(const ProgramResult& result, size_t output = 0) {
    const PinnedBuffer& data = result.outputs[output].data;
    const auto* values = static_cast<const float*>(data.data());
    return {values, values + data.size() / sizeof(float)};
  }

  const OperatorTable table_ = LaidOutOperators(acl_);
  PlanCacheCounters my_counters_{table_.operators().size()};
  std::unique_ptr<PlanCache> my_plans_;
  ProgramLimits limits_of_programs_;
};

TEST_F(ContiguousCopiesTest, OnlyViewsWithOtherStridesAreCopied) {
  const struct {
    const char* name;
    View view;
    size_t copies;
  } kCases[] = {
      {"Plain", {{2, 3}}, 0},
      {"SameStrides", {{2, 3}, {3, 1}}, 0},
      {"Offset", {{1, 3}, {3, 1}, 3}, 0},
      {"OneElementAxis", {{1, 3}, {77, 1}}, 0},
      {"Scalar", {{}, {}, 5}, 0},
      {"NoElements", {{0, 3}, {1, 5}}, 0},
      {"Transposed", {{3, 2}, {1, 3}}, 1},
      {"Column", {{2}, {3}}, 1},
      {"Repeated", {{4, 3}, {0, 1}}, 1},
      {"RowsApart", {{2, 2}, {3, 1}, 1}, 1},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    v1::ExecuteRequest request;
    AddSub(c.view, &request)->set_payload(0);
    const auto bound = Bind(request, {24});
    ASSERT_TRUE(bound.ok()) << bound.status();
    const Program& program = *bound->program;
    ASSERT_EQ(program.copies.size(), c.copies);
    EXPECT_EQ(CopiesBefore(program, 0).size(), c.copies);
    const BoundInput& input = program.invocations[0].inputs[0];
    EXPECT_EQ(input.strides, ContiguousStrides(input.spec.shape));
    EXPECT_EQ(std::holds_alternative<CopySource>(input.source), c.copies == 1);
    EXPECT_EQ(program.output_bytes, (1 + c.copies) * static_cast<uint64_t>(NumBytes(input.spec)));
    if (c.copies == 0) continue;
    EXPECT_EQ(input.offset, 0);
    const BoundInput& view = program.copies[0].view();
    EXPECT_THAT(view.strides, testing::ElementsAreArray(c.view.strides));
    EXPECT_EQ(view.offset, c.view.offset);
    EXPECT_TRUE(std::holds_alternative<PayloadSource>(view.source));
  }
}

TEST_F(ContiguousCopiesTest, ThePlanHasMemoryForACopyWhileItIsRead) {
  v1::ExecuteRequest request;
  for (int i = 0; i < 3; ++i) AddSub({{300, 200}, {1, 300}}, &request)->set_payload(0);
  for (int i = 0; i < 3; ++i) request.add_results()->set_invocation(i);
  const uint64_t bytes = 300 * 200 * sizeof(float);

  const auto bound = Bind(request, {bytes});

  ASSERT_TRUE(bound.ok()) << bound.status();
  const Program& program = *bound->program;
  const MemoryPlan& plan = program.memory_plan;
  ASSERT_EQ(plan.copies.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(&CopiesBefore(program, i)[0], &program.copies[i]);
    // Neither the payload, which all of them read, nor results that wait are overwritten.
    std::vector<uint64_t> places = {plan.payloads[0], plan.copies[i]};
    for (uint32_t k = 0; k <= i; ++k) places.push_back(plan.outputs[k]);
    std::sort(places.begin(), places.end());
    for (size_t k = 1; k < places.size(); ++k) EXPECT_GE(places[k] - places[k - 1], bytes);
  }
  EXPECT_GE(plan.total_bytes, 5 * bytes) << "payload, three results and a copy";
  EXPECT_LT(plan.total_bytes, 5 * bytes + 1000) << "copies use one place in turn";
}

TEST_F(ContiguousCopiesTest, ACopyCountsAgainstTheLimits) {
  v1::ExecuteRequest request;
  AddSub({{1000, 3}, {0, 1}}, &request)->set_payload(0);
  const std::vector<uint64_t> payload = {12};
  ASSERT_TRUE(Bind(request, payload).ok());

  const ProgramLimits defaults;
  limits_of_programs_.max_tensor_bytes = 11'999;
  EXPECT_THAT(Bind(request, payload).status().message(),
              HasSubstr("LaidOutSub: self: takes 12000 bytes, at most 11999 allowed"));
  limits_of_programs_ = defaults;
  limits_of_programs_.max_program_bytes = 24'011;
  EXPECT_EQ(ReasonOf(Bind(request, payload).status()), "too_large");
  limits_of_programs_.max_program_bytes = 24'500;
  EXPECT_TRUE(Bind(request, payload).ok());
  limits_of_programs_ = defaults;
  limits_of_programs_.max_program_work = 5'999;
  EXPECT_EQ(ReasonOf(Bind(request, payload).status()), "work_limit");
  limits_of_programs_.max_program_work = 6'000;
  EXPECT_TRUE(Bind(request, payload).ok());
}

TEST_F(ContiguousCopiesTest, WithoutTheCopyTheViewIsRefused) {
  table_.Find("InplaceCopy")->offer->Set(0, {GoldenVerdict::kWrong, "it is wrong"});
  v1::ExecuteRequest request;
  AddSub({{3, 2}, {1, 3}}, &request)->set_payload(0);

  const absl::Status refused = Bind(request, {24}).status();

  EXPECT_EQ(ReasonOf(refused), "operator_unavailable");
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("LaidOutSub: self: must be contiguous here"));
  request.Clear();
  AddSub({{2, 3}}, &request)->set_payload(0);
  EXPECT_TRUE(Bind(request, {24}).ok());
}

// A tenant needs no right to InplaceCopy, since it did not ask for it; a device must offer it.
TEST_F(ContiguousCopiesTest, TheCopyIsNoOperatorOfTheRequest) {
  const LoadedOperator* const copy = table_.Find("InplaceCopy");
  copy->offer->Set(0, {GoldenVerdict::kRight});
  copy->offer->Set(1, {GoldenVerdict::kUnsupported, "the product lacks it"});
  v1::ExecuteRequest request;
  AddSub({{3, 2}, {1, 3}}, &request)->set_payload(0);
  const auto bound = Bind(request, {24});
  ASSERT_TRUE(bound.ok()) << bound.status();

  EXPECT_THAT(bound->program->operators, ElementsAre(table_.Find("LaidOutSub")));
  EXPECT_EQ(bound->program->operator_index(), table_.Find("LaidOutSub")->index);
  EXPECT_EQ(bound->program->MissingOn(0), nullptr);
  EXPECT_EQ(bound->program->MissingOn(1), copy);
}

TEST_F(ContiguousCopiesTest, TheFunctionGetsTheViewsElements) {
  v1::ExecuteRequest request;
  AddSub({{2, 3}}, &request)->set_payload(0);
  // Of the first one's result.
  AddSub({{3, 2}, {1, 3}}, &request)->mutable_invocation_output()->set_invocation(0);
  for (int i = 0; i < 2; ++i) request.add_results()->set_invocation(i);
  const auto bound = Bind(request, {24});
  ASSERT_TRUE(bound.ok()) << bound.status();
  for (int i = 0; i < 2; ++i) {
    const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);

    const auto result = Run(*bound, {{0, 1, 2, 3, 4, 5}});

    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_THAT(ValuesOf(*result, 0), ElementsAre(10, 9, 8, 7, 6, 5));
    EXPECT_THAT(ValuesOf(*result, 1), ElementsAre(0, 3, 1, 4, 2, 5));
    EXPECT_EQ(result->contiguous_copies, 1u);
    EXPECT_EQ(result->plan_hits + result->plan_misses, 2u) << "copies are no invocations";
    EXPECT_EQ(HostCount(OPSERVE_HOST_LAUNCHES) - launches, 3);
  }
}

TEST_F(ContiguousCopiesTest, ElementsOfAListAreCopiedOneByOne) {
  v1::ExecuteRequest request;
  v1::Invocation* invocation = request.add_invocations();
  invocation->set_operator_("LaidOutCat");
  v1::NamedTensor* tensors = invocation->add_inputs();
  tensors->set_name("tensors");
  for (const View& view : {View{{2}, {3}}, View{{2}, {1}, 1}, View{{2}, {2}, 2}}) {
    v1::Tensor* tensor = tensors->mutable_list()->add_tensors();
    SetView(view, tensor);
    tensor->set_payload(0);
  }
  const auto bound = Bind(request, {24});
  ASSERT_TRUE(bound.ok()) << bound.status();

  const auto result = Run(*bound, {{0, 1, 2, 3, 4, 5}});

  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(ValuesOf(*result), ElementsAre(0, 3, 1, 2, 2, 4));
  EXPECT_EQ(result->contiguous_copies, 2u);
}

TEST_F(ContiguousCopiesTest, ACapturedRunMakesThemToo) {
  v1::PrepareRequest request;
  v1::ProgramInput* input = request.add_inputs();
  input->set_dtype(v1::DATA_TYPE_FLOAT);
  input->add_shape(2);
  input->add_shape(3);
  AddSub({{3, 2}, {1, 3}}, request.mutable_program())->set_program_input(0);
  const auto prepared = MakePrepared(request, table_, limits_of_programs_, NoResident);
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const auto call = prepared->Bind({}, {24}, NoResident, NoSharedMemory);
  ASSERT_TRUE(call.ok()) << call.status();
  CapturedRuns captured(acl_, /*max_bytes=*/1 << 20, /*runs_per_program=*/1,
                        [](uint32_t, uint64_t) -> absl::StatusOr<std::shared_ptr<void>> {
                          return std::make_shared<int>();
                        });
  for (int i = 0; i < 4; ++i) {
    SCOPED_TRACE(i);
    const auto base = static_cast<float>(i);

    const auto result = Run(*call, {{base, 1, 2, 3, 4, 5}}, &captured);

    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_THAT(ValuesOf(*result), ElementsAre(10 - base, 7, 9, 6, 8, 5));
    EXPECT_EQ(result->contiguous_copies, 1u);
    // The first run launches, the second one is captured.
    EXPECT_EQ(result->is_replayed, i >= 2);
  }
  EXPECT_EQ(captured.replays(), 2u);
  // A replay that fails is launched, for which the copy's plan is acquired as well.
  InjectFaults("call=aclmdlRIExecuteAsync,code=507899,count=100");
  const auto launched = Run(*call, {{7, 1, 2, 3, 4, 5}}, &captured);
  ASSERT_TRUE(launched.ok()) << launched.status();
  EXPECT_FALSE(launched->is_replayed);
  EXPECT_THAT(ValuesOf(*launched), ElementsAre(3, 7, 9, 6, 8, 5));
}

// As a launch in the capture, the copy is renewed for the launch that follows.
TEST_F(ContiguousCopiesTest, ACopyThatFailsInACaptureIsLaunched) {
  v1::ExecuteRequest request;
  AddSub({{3, 2}, {1, 3}}, &request)->set_payload(0);
  auto bound = Bind(request, {24});
  ASSERT_TRUE(bound.ok()) << bound.status();
  Program program = *bound->program;
  program.is_capturable = IsCapturable(program);
  bound->program = WithPlans(std::move(program));
  CapturedRuns captured(acl_, /*max_bytes=*/1 << 20, /*runs_per_program=*/1,
                        [](uint32_t, uint64_t) -> absl::StatusOr<std::shared_ptr<void>> {
                          return std::make_shared<int>();
                        });
  const std::vector<std::vector<float>> payload = {{0, 1, 2, 3, 4, 5}};
  ASSERT_TRUE(Run(*bound, payload, &captured).ok());
  InjectFaults("call=aclnnInplaceCopy,code=561000,nth=1");

  const auto result = Run(*bound, payload, &captured);

  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->is_replayed);
  EXPECT_THAT(ValuesOf(*result), ElementsAre(10, 7, 9, 6, 8, 5));
  EXPECT_EQ(captured.results(CapturedRuns::kNotCaptured), 1u);
}

}  // namespace
}  // namespace opserve::server
