#include "server/run/plan_cache.h"

#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/program/tensor_view.h"
#include "tests/unit/server/acl_environment.h"

namespace opserve::server {
namespace {

uint64_t StageOneRuns() { return HostCalls("aclnnL1LossBackwardGetWorkspaceSize"); }

class PlanCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(acl_.aclrtSetDevice(0), 0);
    ASSERT_EQ(acl_.aclrtCreateStream(&stream_), 0);
  }
  void TearDown() override {
    ClearFaults();
    acl_.aclrtDestroyStream(stream_);
    EXPECT_EQ(HostCount(OPSERVE_HOST_EXECUTORS), 0);
    EXPECT_EQ(HostCount(OPSERVE_HOST_TENSORS), 0);
    acl_.aclrtResetDevice(0);
  }

  // L1LossBackward of [count] FLOATs.
  BoundInvocation L1(int64_t count) {
    BoundInvocation invocation;
    invocation.op = operators_.Find("L1LossBackward");
    for (int i = 0; i < 3; ++i) {
      ViewWhole({v1::DATA_TYPE_FLOAT, {count}}, &invocation.inputs.emplace_back());
    }
    invocation.attributes = {int64_t{2}};
    invocation.input_ends = {1, 2, 3};
    invocation.outputs.push_back({.spec = {v1::DATA_TYPE_FLOAT, {count}}});
    invocation.output_ends = {1};
    return invocation;
  }

  // Launches the plan of `lease` with grad_output 5, self 1 and target `target` in every element;
  // element 0 of the output.
  float Run(PlanCache::Lease& lease, int64_t count, float target) {
    const size_t bytes = count * sizeof(float);
    std::vector<void*> tensors;
    for (float value : {5.0f, 1.0f, target, 0.0f}) {
      void* memory = nullptr;
      EXPECT_EQ(acl_.aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_NORMAL_ONLY), 0);
      const std::vector<float> values(count, value);
      acl_.aclrtMemcpy(memory, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
      tensors.push_back(memory);
    }
    const absl::Status status =
        lease.Launch({tensors[0], tensors[1], tensors[2]}, {tensors[3]}, nullptr, stream_);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(acl_.aclrtSynchronizeStream(stream_), 0);
    float result = 0;
    acl_.aclrtMemcpy(&result, sizeof(result), tensors[3], sizeof(result),
                     ACL_MEMCPY_DEVICE_TO_HOST);
    for (void* memory : tensors) acl_.aclrtFree(memory);
    return result;
  }

  // Acquires a plan for an invocation that is run.
  static absl::StatusOr<PlanCache::Lease> AcquireToRun(PlanCache& cache,
                                                       const BoundInvocation& call) {
    cache.BeginRun();
    absl::StatusOr<PlanCache::Lease> lease = cache.Acquire(call);
    if (lease.ok()) cache.Count(*lease);
    return lease;
  }

  AclLibrary& acl_ = MutableTestAcl();
  const OperatorTable operators_{acl_};
  PlanCacheCounters counters_{operators_.operators().size()};
  aclrtStream stream_ = nullptr;
};

TEST_F(PlanCacheTest, AnEqualCallSavesStageOneAndGetsItsOwnAddresses) {
  PlanCache cache(acl_, 8, counters_);
  const uint64_t before = StageOneRuns();

  auto first = cache.Acquire(L1(100));
  auto second = cache.Acquire(L1(100));

  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_FALSE(first->is_hit);
  EXPECT_TRUE(second->is_hit);
  EXPECT_EQ(StageOneRuns() - before, 1u);
  EXPECT_EQ(Run(*first, 100, 0.0f), 5.0f);
  EXPECT_EQ(Run(*second, 100, 2.0f), -5.0f);
  EXPECT_EQ(Run(*first, 100, 1.0f), 0.0f);
}

struct DifferenceCase {
  const char* name;
  std::function<void(BoundInvocation*)> change;
};

TEST_F(PlanCacheTest, WhateverStageOneSeesMakesAnotherPlan) {
  const OperatorTable& operators = operators_;
  const std::vector<DifferenceCase> cases = {
      {"Shape", [](auto* i) { i->inputs[0].spec.shape = {1}; }},
      {"Dtype", [](auto* i) { i->inputs[0].spec.dtype = v1::DATA_TYPE_FLOAT16; }},
      {"Strides", [](auto* i) { i->inputs[0].strides = {0}; }},
      {"Offset", [](auto* i) { i->inputs[0].offset = 1; }},
      {"Storage", [](auto* i) { i->inputs[0].storage_elements = 7; }},
      {"Rank",
       [](auto* i) {
         i->inputs[0].spec.shape = {1};
         i->inputs[0].spec.shape.insert(i->inputs[0].spec.shape.begin(), 1);
         i->inputs[0].strides = {1, 1};
         i->outputs[0].spec.shape = {1, 4};
       }},
      {"Attribute", [](auto* i) { i->attributes[0] = int64_t{1}; }},
      {"OutputDtype", [](auto* i) { i->outputs[0].spec.dtype = v1::DATA_TYPE_BF16; }},
      {"Operator",
       [&](auto* i) {
         i->op = operators.Find("KlDivBackward");
         i->attributes = {int64_t{2}, false};
       }},
  };
  PlanCache cache(acl_, 100, counters_);
  ASSERT_TRUE(cache.Acquire(L1(4)).ok());
  for (const DifferenceCase& c : cases) {
    BoundInvocation changed = L1(4);
    c.change(&changed);

    auto plan = cache.Acquire(changed);

    ASSERT_TRUE(plan.ok()) << c.name << plan.status();
    EXPECT_FALSE(plan->is_hit) << c.name;
  }
  EXPECT_TRUE(cache.Acquire(L1(4))->is_hit);
}

TEST_F(PlanCacheTest, TheLeastRecentlyUsedPlanMakesRoomButALeaseKeepsIt) {
  PlanCache cache(acl_, 2, counters_);
  auto leased = AcquireToRun(cache, L1(1));
  ASSERT_TRUE(AcquireToRun(cache, L1(2)).ok());
  ASSERT_TRUE(AcquireToRun(cache, L1(3)).ok());  // in the place of L1(1)

  EXPECT_TRUE(AcquireToRun(cache, L1(2))->is_hit);
  EXPECT_FALSE(AcquireToRun(cache, L1(1))->is_hit);  // in the place of L1(3)
  EXPECT_TRUE(AcquireToRun(cache, L1(2))->is_hit);
  EXPECT_EQ(Run(*leased, 1, 0.0f), 5.0f);
  const PlanCacheCounters::Operator& counted = counters_.of[leased->plan->op().index];
  EXPECT_EQ(counted.evictions, 2u);
  EXPECT_EQ(counted.hits, 2u);
  EXPECT_EQ(counted.misses, 4u);
  EXPECT_EQ(counted.entries, 2);
}

TEST_F(PlanCacheTest, OfAProgramWithTooManyPlansSomeStay) {
  PlanCache cache(acl_, 3, counters_);
  ASSERT_TRUE(AcquireToRun(cache, L1(100)).ok());
  for (int run = 0; run < 3; ++run) {
    SCOPED_TRACE(run);
    cache.BeginRun();
    int hits = 0;
    std::vector<PlanCache::Lease> leases;
    for (const int64_t size : {1, 2, 3, 4, 5}) {
      auto lease = cache.Acquire(L1(size));
      ASSERT_TRUE(lease.ok()) << lease.status();
      hits += lease->is_hit;
      leases.push_back(*std::move(lease));
    }
    EXPECT_EQ(hits, run == 0 ? 0 : 3);
    // Those without a place can be launched like the others.
    EXPECT_EQ(Run(leases[4], 5, 0.0f), 5.0f);
  }
  // Another program's plans make room as usual.
  EXPECT_FALSE(AcquireToRun(cache, L1(100))->is_hit);
  EXPECT_TRUE(AcquireToRun(cache, L1(100))->is_hit);
}

TEST_F(PlanCacheTest, ACallWithoutARepeatableExecutorRunsStageOneEachTime) {
  PlanCache cache(acl_, 8, counters_);
  InjectFaults("call=aclSetAclOpExecutorRepeatable,code=561000,count=all");
  const uint64_t before = StageOneRuns();

  auto first = AcquireToRun(cache, L1(10));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(Run(*first, 10, 0.0f), 5.0f);
  auto second = AcquireToRun(cache, L1(10));
  EXPECT_EQ(Run(*second, 10, 3.0f), -5.0f);

  // Its workspace is known, but stage one was not saved.
  EXPECT_FALSE(second->is_hit);
  EXPECT_EQ(StageOneRuns() - before, 3u);
  const PlanCacheCounters::Operator& counted = counters_.of[first->plan->op().index];
  EXPECT_EQ(counted.hits, 0u);
  EXPECT_EQ(counted.misses, 2u);
  EXPECT_EQ(counted.uncacheable, 2u);
  EXPECT_EQ(counted.entries, 1);
}

// Stage one of L1LossBackward; remembers the first executor since `first_executor` was null.
aclOpExecutor* first_executor = nullptr;
aclnnStatus RememberingStageOne(const aclTensor* grad_output, const aclTensor* self,
                                const aclTensor* target, int64_t reduction, aclTensor* grad_input,
                                uint64_t* workspace_bytes, aclOpExecutor** executor) {
  static const auto stage_one = reinterpret_cast<decltype(&RememberingStageOne)>(
      TestAcl()
          .FindOperator("aclnnL1LossBackwardGetWorkspaceSize", "aclnnL1LossBackward")
          .stage_one);
  const aclnnStatus status =
      stage_one(grad_output, self, target, reduction, grad_input, workspace_bytes, executor);
  if (first_executor == nullptr) first_executor = *executor;
  return status;
}

TEST_F(PlanCacheTest, ACannWithoutRepeatableExecutorsRunsStageOneEachTime) {
  const struct {
    const char* missing;
    std::function<void()> take_away, put_back;
    bool loses_executor;  // nothing can destroy the one that only told the workspace
  } cases[] = {
#define MISSING(function, loses_executor)          \
  {#function, [this] { acl_.function = nullptr; }, \
   [this, original = acl_.function] { acl_.function = original; }, loses_executor}
      MISSING(aclSetAclOpExecutorRepeatable, false),
      MISSING(aclDestroyAclOpExecutor, true),
      MISSING(aclSetInputTensorAddr, false),
      MISSING(aclSetOutputTensorAddr, false),
#undef MISSING
  };
  LoadedOperator op = *operators_.Find("L1LossBackward");
  op.call = std::make_shared<StageOneFunction>(*op.descriptor,
                                               reinterpret_cast<void*>(&RememberingStageOne));
  BoundInvocation call = L1(10);
  call.op = &op;
  for (const auto& c : cases) {
    SCOPED_TRACE(c.missing);
    first_executor = nullptr;
    c.take_away();
    {
      PlanCache cache(acl_, 8, counters_);
      const uint64_t before = StageOneRuns();

      {
        auto first = cache.Acquire(call);
        ASSERT_TRUE(first.ok()) << first.status();
        EXPECT_EQ(Run(*first, 10, 0.0f), 5.0f);
        EXPECT_EQ(Run(*first, 10, 2.0f), -5.0f);
        EXPECT_EQ(HostCount(OPSERVE_HOST_TENSORS), 3 * 4) << "the plan's and both launches'";
      }
      EXPECT_EQ(HostCount(OPSERVE_HOST_TENSORS), 4) << "launches go with their lease";
      auto second = cache.Acquire(call);
      EXPECT_EQ(Run(*second, 10, 1.0f), 0.0f);

      EXPECT_FALSE(second->is_hit);
      EXPECT_EQ(StageOneRuns() - before, 4u);
    }
    c.put_back();
    EXPECT_EQ(HostCount(OPSERVE_HOST_EXECUTORS), c.loses_executor ? 1 : 0);
    if (c.loses_executor) acl_.aclDestroyAclOpExecutor(first_executor);
  }
}

TEST_F(PlanCacheTest, NothingIsKeptOfACallThatFailed) {
  PlanCache cache(acl_, 8, counters_);
  for (const char* function : {"aclCreateTensor", "aclnnL1LossBackwardGetWorkspaceSize",
                               "aclSetAclOpExecutorRepeatable"}) {
    InjectFaults(std::string("call=") + function + ",code=107002");
    EXPECT_FALSE(cache.Acquire(L1(10)).ok()) << function;
    EXPECT_EQ(HostCount(OPSERVE_HOST_TENSORS), 0) << function;
    EXPECT_EQ(HostCount(OPSERVE_HOST_EXECUTORS), 0) << function;
  }
  EXPECT_FALSE(cache.Acquire(L1(10))->is_hit);
}

TEST_F(PlanCacheTest, NothingIsKeptOfAListThatCannotBeMade) {
  PlanCache cache(acl_, 8, counters_);
  BoundInvocation call;
  call.op = operators_.Find("ForeachAddScalarList");
  ASSERT_NE(call.op, nullptr);
  for (int i = 0; i < 2; ++i) {
    ViewWhole({v1::DATA_TYPE_FLOAT, {10}}, &call.inputs.emplace_back());
    call.outputs.push_back({.spec = {v1::DATA_TYPE_FLOAT, {10}}});
  }
  call.attributes = {std::vector<double>{1, 2}};
  call.input_ends = {2};
  call.output_ends = {2};
  for (const char* function : {"aclCreateScalar", "aclCreateScalarList", "aclCreateTensorList"}) {
    for (int nth = 1; nth <= 2; ++nth) {
      InjectFaults(std::string("call=") + function + ",nth=" + std::to_string(nth) + ",code=1");
      if (cache.Acquire(call).ok()) continue;  // called once only
      EXPECT_EQ(HostCount(OPSERVE_HOST_TENSORS), 0) << function;
    }
    ClearFaults();
  }
}

TEST_F(PlanCacheTest, APlanWhoseLaunchFailedIsMadeAnew) {
  PlanCache cache(acl_, 8, counters_);
  auto plan = cache.Acquire(L1(10));
  InjectFaults("call=aclnnL1LossBackward,code=361001");
  void* const anywhere = reinterpret_cast<void*>(uintptr_t{64});
  ASSERT_FALSE(plan->Launch({anywhere, anywhere, anywhere}, {anywhere}, nullptr, stream_).ok());

  auto next = cache.Acquire(L1(10));

  EXPECT_FALSE(next->is_hit);
  EXPECT_EQ(Run(*next, 10, 0.0f), 5.0f);
}

}  // namespace
}  // namespace opserve::server
