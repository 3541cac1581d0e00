// How the host cuts a call of the Ascend C kernel into tiles.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/ascendc/op_host/plan.h"

namespace opserve::ascendc {
namespace {

Problem ProblemOf(Shape grad_output, Shape self, Shape target) {
  Problem problem;
  problem.shape[kGradOutput] = std::move(grad_output);
  problem.shape[kSelf] = std::move(self);
  problem.shape[kTarget] = std::move(target);
  return problem;
}

Plan PlanOf(const Problem& problem, const Device& device = {}) {
  Plan plan;
  std::string error;
  EXPECT_TRUE(MakePlan(problem, device, &plan, &error)) << error;
  return plan;
}

std::vector<int64_t> StridesOf(const KlDivTargetBackwardAxis& axis) {
  return {axis.stride, axis.stride + kNumInputs};
}

TEST(AscendcPlanTest, AxesThatAllInputsWalkThroughAlikeAreOne) {
  const KlDivTargetBackwardTiling tiling = PlanOf(ProblemOf({}, {4, 1, 5, 6}, {4, 1, 5, 6})).tiling;

  EXPECT_EQ(tiling.col.count, 120);
  EXPECT_EQ(StridesOf(tiling.col), (std::vector<int64_t>{0, 1, 1}));
  EXPECT_EQ(tiling.row.count, 1);
  EXPECT_EQ(tiling.num_kept + tiling.num_reduced, 0);
}

TEST(AscendcPlanTest, AxesThatTargetDoesNotHaveAreReduced) {
  const KlDivTargetBackwardTiling tiling =
      PlanOf(ProblemOf({7, 1, 1, 1}, {7, 4, 5, 6}, {4, 1, 6})).tiling;

  EXPECT_EQ(tiling.col.count, 6);
  EXPECT_FALSE(tiling.col_reduced);
  EXPECT_EQ(tiling.row.count, 5);
  EXPECT_TRUE(tiling.row_reduced);
  EXPECT_EQ(StridesOf(tiling.row), (std::vector<int64_t>{0, 6, 0}));
  ASSERT_EQ(tiling.num_kept, 1);
  EXPECT_EQ(tiling.kept[0].count, 4);
  EXPECT_EQ(StridesOf(tiling.kept[0]), (std::vector<int64_t>{0, 30, 6}));
  ASSERT_EQ(tiling.num_reduced, 1);
  EXPECT_EQ(StridesOf(tiling.reduced[0]), (std::vector<int64_t>{1, 120, 0}));
  EXPECT_EQ(tiling.num_items, 4);
  EXPECT_EQ(tiling.num_steps, 7);
}

TEST(AscendcPlanTest, EightAxesThatDoNotMerge) {
  const KlDivTargetBackwardTiling tiling =
      PlanOf(
          ProblemOf({2, 1, 2, 1, 2, 1, 2, 1}, {2, 2, 2, 2, 2, 2, 2, 2}, {1, 2, 1, 2, 1, 2, 1, 2}))
          .tiling;

  ASSERT_EQ(tiling.num_kept, 3);
  ASSERT_EQ(tiling.num_reduced, 3);
  EXPECT_EQ(StridesOf(tiling.kept[0]), (std::vector<int64_t>{0, 64, 8}));  // the outermost
  EXPECT_EQ(StridesOf(tiling.kept[2]), (std::vector<int64_t>{0, 4, 2}));
  EXPECT_EQ(StridesOf(tiling.reduced[0]), (std::vector<int64_t>{8, 128, 0}));
  EXPECT_EQ(tiling.num_items, 8);
  EXPECT_EQ(tiling.num_steps, 8);
}

TEST(AscendcPlanTest, EveryCoreHasWork) {
  for (const int64_t num_cores : {1, 2, 20, 48}) {
    for (const Problem& problem :
         {ProblemOf({}, {1000, 1000}, {1000, 1000}), ProblemOf({}, {50, 1000}, {1000}),
          ProblemOf({}, {1000, 3}, {1000, 1}), ProblemOf({3, 1, 100}, {3, 100, 100}, {3, 1, 100}),
          ProblemOf({}, {3200}, {3200})}) {
      EXPECT_GE(PlanOf(problem, {num_cores}).num_cores, std::min<int64_t>(num_cores, 3))
          << num_cores;
      EXPECT_LE(PlanOf(problem, {num_cores}).num_cores, num_cores);
    }
  }
  EXPECT_EQ(PlanOf(ProblemOf({}, {1000, 1000}, {1000, 1000}), {48}).num_cores, 48);
}

TEST(AscendcPlanTest, SmallInputsTakeFewCores) {
  EXPECT_EQ(PlanOf(ProblemOf({}, {10}, {10}), {48}).num_cores, 1);
  EXPECT_EQ(PlanOf(ProblemOf({}, {1000, 1000}, {}), {48}).num_cores, 1);  // one output element
}

TEST(AscendcPlanTest, CoresDoNotChangeTheSums) {
  const Problem problem = ProblemOf({}, {300, 50, 200}, {300, 1, 200});
  const KlDivTargetBackwardTiling one = PlanOf(problem, {1}).tiling;
  const KlDivTargetBackwardTiling many = PlanOf(problem, {4800}).tiling;

  EXPECT_NE(one.num_items, many.num_items);
  EXPECT_EQ(one.num_steps, many.num_steps);
  EXPECT_EQ(one.row_tile, many.row_tile);
}

TEST(AscendcPlanTest, TilesFillTheUnifiedBuffer) {
  Problem problem = ProblemOf({1000, 1000}, {1000, 1000}, {1000, 1000});
  const int32_t floats = PlanOf(problem).tiling.tile_elements;
  EXPECT_GT(floats, 4000);
  EXPECT_EQ(floats % 64, 0);

  for (int32_t& bytes : problem.element_bytes) bytes = 2;
  EXPECT_GT(PlanOf(problem).tiling.tile_elements, floats);
}

TEST(AscendcPlanTest, WhatEveryTileNeedsIsCopiedInOnce) {
  const auto constants = [](const Problem& problem) {
    const KlDivTargetBackwardTiling tiling = PlanOf(problem).tiling;
    return std::vector<int32_t>(tiling.is_constant, tiling.is_constant + kNumInputs);
  };

  EXPECT_EQ(constants(ProblemOf({}, {9999, 7}, {7})), (std::vector<int32_t>{1, 0, 1}));
  EXPECT_EQ(constants(ProblemOf({9999, 1}, {9999, 7}, {9999, 7})), (std::vector<int32_t>{0, 0, 0}));
  EXPECT_EQ(constants(ProblemOf({}, {7, 99999}, {99999})), (std::vector<int32_t>{1, 0, 0}));
  EXPECT_EQ(constants(ProblemOf({}, {9, 9, 9}, {9, 1, 9})), (std::vector<int32_t>{1, 0, 0}));
  EXPECT_EQ(constants(ProblemOf({}, {0, 3}, {1, 3})), (std::vector<int32_t>{0, 0, 0}));
}

TEST(AscendcPlanTest, TheScaleIsOneOverTheDivisor) {
  Problem problem = ProblemOf({}, {4, 1}, {1, 8});
  const float scales[] = {1.0f, 1.0f / 32, 1.0f, 1.0f / 4, 1.0f};
  for (int64_t reduction = 0; reduction < 5; ++reduction) {
    problem.reduction = reduction;
    EXPECT_EQ(PlanOf(problem).tiling.scale, scales[reduction]) << reduction;
  }
  problem = ProblemOf({}, {}, {});
  problem.reduction = 3;
  EXPECT_EQ(PlanOf(problem).tiling.scale, 1.0f);
}

TEST(AscendcPlanTest, AnEmptyOutputNeedsNoCore) {
  EXPECT_EQ(PlanOf(ProblemOf({}, {1, 3}, {0, 3})).num_cores, 0);
}

TEST(AscendcPlanTest, ASumOfNothingHasNoSteps) {
  const Plan plan = PlanOf(ProblemOf({}, {0, 3}, {1, 3}));

  EXPECT_EQ(plan.num_cores, 1);
  EXPECT_EQ(plan.tiling.num_items, 1);
  EXPECT_EQ(plan.tiling.num_steps, 0);
}

struct Refusal {
  Problem problem;
  Device device;
  const char* message;
};

TEST(AscendcPlanTest, RefusesWhatItCannotDo) {
  const Refusal refusals[] = {
      {ProblemOf({}, {2}, {3}), {}, "do not broadcast"},
      {ProblemOf({2}, {1}, {1}), {}, "do not broadcast"},  // gradOutput would enlarge the result
      {ProblemOf({1, 1}, {1}, {1}), {}, "do not broadcast"},
      {ProblemOf({}, {1, 1, 1, 1, 1, 1, 1, 1, 2}, {2}), {}, "rank 9"},
      {ProblemOf({}, {2}, {2}), {1, 8 * 1024}, "8192 bytes does not hold"},
  };
  for (const Refusal& refusal : refusals) {
    Plan plan;
    std::string error;
    EXPECT_FALSE(MakePlan(refusal.problem, refusal.device, &plan, &error));
    EXPECT_NE(error.find(refusal.message), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace opserve::ascendc
