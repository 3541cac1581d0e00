// Life of executors: who frees them, when, and what repeatable ones allow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_cat.h"
#include "aclnnop/aclnn_kl_div_backward.h"
#include "aclnnop/aclnn_l1_loss_backward.h"
#include "tests/conformance/device_fixture.h"

namespace opserve::host_cann {
namespace {

using conformance::DeviceBuffer;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

std::string Bytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::vector<float> Floats(const DeviceBuffer& buffer) {
  const std::string bytes = buffer.Read();
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// A call of L1LossBackward on tensors of two elements: grad_input = {10, -20}.
class ExecutorTest : public conformance::DeviceTest {
 protected:
  void SetUp() override {
    grad_output_tensor_ = Create(grad_output_);
    self_tensor_ = Create(self_);
    target_tensor_ = Create(target_);
    grad_input_tensor_ = Create(grad_input_);
  }

  void TearDown() override {
    for (const aclTensor* tensor :
         {grad_output_tensor_, self_tensor_, target_tensor_, grad_input_tensor_}) {
      EXPECT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);
    }
  }

  static aclTensor* Create(const DeviceBuffer& buffer) {
    const int64_t shape[] = {2};
    return aclCreateTensor(shape, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape, 1,
                           buffer.address());
  }

  aclOpExecutor* StageOne() {
    aclOpExecutor* executor = nullptr;
    uint64_t workspace_size = 1;
    EXPECT_EQ(aclnnL1LossBackwardGetWorkspaceSize(grad_output_tensor_, self_tensor_, target_tensor_,
                                                  /*reduction=*/0, grad_input_tensor_,
                                                  &workspace_size, &executor),
              ACLNN_SUCCESS);
    EXPECT_EQ(workspace_size, 0u);
    return executor;
  }

  aclnnStatus StageTwo(aclOpExecutor* executor) {
    const aclnnStatus status = aclnnL1LossBackward(nullptr, 0, executor, stream_);
    EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
    return status;
  }

  const DeviceBuffer grad_output_{Bytes({10, 20})};
  const DeviceBuffer self_{Bytes({1, 1})};
  const DeviceBuffer target_{Bytes({0, 2})};
  const DeviceBuffer grad_input_{Bytes({0, 0})};
  aclTensor* grad_output_tensor_ = nullptr;
  aclTensor* self_tensor_ = nullptr;
  aclTensor* target_tensor_ = nullptr;
  aclTensor* grad_input_tensor_ = nullptr;
};

TEST_F(ExecutorTest, StageTwoFreesIt) {
  aclOpExecutor* executor = StageOne();

  EXPECT_EQ(StageTwo(executor), ACLNN_SUCCESS);

  EXPECT_THAT(Floats(grad_input_), ElementsAre(10, -20));
  EXPECT_EQ(StageTwo(executor), ACLNN_ERR_INNER_NULLPTR);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_ERR_INNER_NULLPTR);
}

TEST_F(ExecutorTest, AFailedStageTwoFreesItToo) {
  aclOpExecutor* executor = StageOne();

  EXPECT_EQ(aclnnL1LossBackward(nullptr, 64, executor, stream_), ACLNN_ERR_PARAM_NULLPTR);

  EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_ERR_INNER_NULLPTR);
}

TEST_F(ExecutorTest, WithoutStageTwoItCanBeDestroyed) {
  aclOpExecutor* executor = StageOne();

  EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_SUCCESS);

  EXPECT_EQ(StageTwo(executor), ACLNN_ERR_INNER_NULLPTR);
}

TEST_F(ExecutorTest, NullIsRefused) {
  EXPECT_EQ(aclnnL1LossBackward(nullptr, 0, nullptr, stream_), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(nullptr), ACLNN_ERR_INNER_NULLPTR);
  EXPECT_EQ(aclDestroyAclOpExecutor(nullptr), ACLNN_ERR_INNER_NULLPTR);
}

TEST_F(ExecutorTest, ARepeatableOneRunsUntilItIsDestroyed) {
  aclOpExecutor* executor = StageOne();
  ASSERT_EQ(aclSetAclOpExecutorRepeatable(executor), ACLNN_SUCCESS);

  EXPECT_EQ(StageTwo(executor), ACLNN_SUCCESS);
  EXPECT_EQ(StageTwo(executor), ACLNN_SUCCESS);

  EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_SUCCESS);
  EXPECT_EQ(StageTwo(executor), ACLNN_ERR_INNER_NULLPTR);
}

TEST_F(ExecutorTest, ANullWorkspaceWithASizeEndsARepeatableOne) {
  aclOpExecutor* executor = StageOne();
  ASSERT_EQ(aclSetAclOpExecutorRepeatable(executor), ACLNN_SUCCESS);

  EXPECT_EQ(aclnnL1LossBackward(nullptr, 64, executor, stream_), ACLNN_ERR_PARAM_NULLPTR);

  EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_ERR_INNER_NULLPTR);
}

TEST_F(ExecutorTest, DestroyingItDoesNotTouchQueuedWork) {
  aclOpExecutor* executor = StageOne();
  ASSERT_EQ(aclSetAclOpExecutorRepeatable(executor), ACLNN_SUCCESS);

  ASSERT_EQ(aclnnL1LossBackward(nullptr, 0, executor, stream_), ACLNN_SUCCESS);
  ASSERT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_SUCCESS);

  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_THAT(Floats(grad_input_), ElementsAre(10, -20));
}

TEST_F(ExecutorTest, AddressesChangeForTheNextStageTwo) {
  const DeviceBuffer other_grad(Bytes({1, 2}));
  const DeviceBuffer other_self(Bytes({-1, 3}));
  const DeviceBuffer other_out(Bytes({0, 0}));
  aclOpExecutor* executor = StageOne();
  ASSERT_EQ(aclSetAclOpExecutorRepeatable(executor), ACLNN_SUCCESS);

  EXPECT_EQ(aclSetInputTensorAddr(executor, 0, grad_output_tensor_, other_grad.address()),
            ACLNN_SUCCESS);
  EXPECT_EQ(aclSetTensorAddr(executor, 1, self_tensor_, other_self.address()), ACLNN_SUCCESS);
  EXPECT_EQ(aclSetTensorAddr(executor, 3, grad_input_tensor_, other_out.address()), ACLNN_SUCCESS);
  EXPECT_EQ(StageTwo(executor), ACLNN_SUCCESS);

  EXPECT_THAT(Floats(other_out), ElementsAre(-1, 2));
  EXPECT_THAT(Floats(grad_input_), ElementsAre(0, 0));

  EXPECT_EQ(AclSetOutputTensorAddr(executor, 0, grad_input_tensor_, grad_input_.address()),
            ACLNN_SUCCESS);
  EXPECT_EQ(StageTwo(executor), ACLNN_SUCCESS);
  EXPECT_THAT(Floats(grad_input_), ElementsAre(-1, 2));
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_SUCCESS);
}

TEST_F(ExecutorTest, AddressesAreWrittenThroughTheDescriptor) {
  const DeviceBuffer other_self(Bytes({-1, 3}));
  aclOpExecutor* executor = StageOne();
  ASSERT_EQ(aclSetAclOpExecutorRepeatable(executor), ACLNN_SUCCESS);
  void* address = nullptr;

  ASSERT_EQ(aclSetTensorAddr(executor, 1, self_tensor_, other_self.address()), ACLNN_SUCCESS);
  EXPECT_EQ(aclGetRawTensorAddr(self_tensor_, &address), ACLNN_SUCCESS);
  EXPECT_EQ(address, other_self.address());

  ASSERT_EQ(aclSetInputTensorAddr(executor, 1, self_tensor_, nullptr), ACLNN_SUCCESS);
  EXPECT_EQ(aclGetRawTensorAddr(self_tensor_, &address), ACLNN_SUCCESS);
  EXPECT_EQ(address, nullptr);
  EXPECT_EQ(StageTwo(executor), ACLNN_ERR_PARAM_NULLPTR) << "the kernel would read from null";
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_SUCCESS);
}

TEST_F(ExecutorTest, AddressesOfListsAreWrittenThroughTheirDescriptors) {
  const DeviceBuffer out(Bytes({0, 0, 0, 0}));
  const int64_t out_shape[] = {4};
  aclTensor* const out_tensor = aclCreateTensor(out_shape, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND,
                                                out_shape, 1, out.address());
  aclTensor* const element = Create(self_);
  const aclTensor* const elements[] = {Create(grad_output_), element};
  aclTensorList* const list = aclCreateTensorList(elements, 2);
  uint64_t workspace_size = 0;
  aclOpExecutor* executor = nullptr;
  ASSERT_EQ(aclnnCatGetWorkspaceSize(list, 0, out_tensor, &workspace_size, &executor),
            ACLNN_SUCCESS);
  ASSERT_EQ(aclSetAclOpExecutorRepeatable(executor), ACLNN_SUCCESS);
  const DeviceBuffer workspace(workspace_size);
  const auto stage_two = [&] {
    const aclnnStatus status = aclnnCat(workspace.address(), workspace_size, executor, stream_);
    EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
    return status;
  };
  void* address = nullptr;

  ASSERT_EQ(aclSetDynamicInputTensorAddr(executor, 0, 1, list, target_.address()), ACLNN_SUCCESS);
  EXPECT_EQ(aclGetRawTensorAddr(element, &address), ACLNN_SUCCESS);
  EXPECT_EQ(address, target_.address());
  EXPECT_EQ(stage_two(), ACLNN_SUCCESS);
  EXPECT_THAT(Floats(out), ElementsAre(10, 20, 0, 2));

  ASSERT_EQ(aclSetDynamicTensorAddr(executor, 0, 1, list, nullptr), ACLNN_SUCCESS);
  EXPECT_EQ(aclGetRawTensorAddr(element, &address), ACLNN_SUCCESS);
  EXPECT_EQ(address, nullptr);
  EXPECT_EQ(stage_two(), ACLNN_ERR_PARAM_NULLPTR) << "the kernel would read from null";

  EXPECT_EQ(aclSetDynamicInputTensorAddr(executor, 0, 2, list, target_.address()),
            ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_SUCCESS);
  EXPECT_EQ(aclDestroyTensorList(list), ACLNN_SUCCESS);
  EXPECT_EQ(aclDestroyTensor(out_tensor), ACLNN_SUCCESS);
}

TEST_F(ExecutorTest, AddressesOfNothingAreRefused) {
  aclOpExecutor* executor = StageOne();
  aclTensor* tensor = self_tensor_;
  void* address = self_.address();
  const aclTensor* elements[] = {Create(self_)};
  aclTensorList* list = aclCreateTensorList(elements, 1);

  EXPECT_EQ(aclSetInputTensorAddr(executor, 3, tensor, address), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(aclSetOutputTensorAddr(executor, 1, tensor, address), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(aclSetTensorAddr(executor, 4, tensor, address), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(aclSetTensorAddr(executor, SIZE_MAX, tensor, address), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(aclSetInputTensorAddr(nullptr, 0, tensor, address), ACLNN_ERR_INNER_NULLPTR);
  EXPECT_EQ(aclSetInputTensorAddr(executor, 0, nullptr, address), ACLNN_ERR_INNER_NULLPTR);
  EXPECT_EQ(aclSetDynamicInputTensorAddr(executor, 0, 0, list, address), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(AclSetDynamicTensorAddr(executor, 0, 0, nullptr, address), ACLNN_ERR_INNER_NULLPTR);

  EXPECT_EQ(StageTwo(executor), ACLNN_SUCCESS);
  EXPECT_THAT(Floats(grad_input_), ElementsAre(10, -20)) << "a refused call changed something";
  EXPECT_EQ(aclDestroyTensorList(list), ACLNN_SUCCESS);
}

TEST_F(ExecutorTest, AddressesAreThoseOfTheDescriptorsAtStageOne) {
  const DeviceBuffer other_out(Bytes({0, 0}));
  aclOpExecutor* executor = StageOne();

  ASSERT_EQ(aclSetRawTensorAddr(grad_input_tensor_, other_out.address()), ACLNN_SUCCESS);
  EXPECT_EQ(StageTwo(executor), ACLNN_SUCCESS);

  EXPECT_THAT(Floats(grad_input_), ElementsAre(10, -20));
}

TEST_F(ExecutorTest, AddressesThatNoElementCanHaveAreRefused) {
  const struct {
    void* address;
    aclnnStatus status;
  } cases[] = {
      {nullptr, ACLNN_ERR_PARAM_NULLPTR},
      {static_cast<char*>(self_.address()) + 1, ACLNN_ERR_PARAM_INVALID},
      {reinterpret_cast<void*>(UINTPTR_MAX - 3), ACLNN_ERR_PARAM_INVALID},
  };
  const int64_t shape[] = {2};
  for (const auto& [address, status] : cases) {
    aclTensor* tensor =
        aclCreateTensor(shape, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape, 1, address);
    uint64_t workspace_size = 0;
    aclOpExecutor* executor = nullptr;
    ASSERT_EQ(aclnnL1LossBackwardGetWorkspaceSize(grad_output_tensor_, tensor, target_tensor_, 0,
                                                  grad_input_tensor_, &workspace_size, &executor),
              ACLNN_SUCCESS);

    EXPECT_EQ(StageTwo(executor), status);
    EXPECT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);
  }
}

TEST_F(ExecutorTest, AnInputWithoutInfluenceNeedsNoAddress) {
  const int64_t shape[] = {2};
  aclTensor* self =
      aclCreateTensor(shape, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape, 1, nullptr);
  uint64_t workspace_size = 0;
  aclOpExecutor* executor = nullptr;
  ASSERT_EQ(aclnnKlDivBackwardGetWorkspaceSize(grad_output_tensor_, self, target_tensor_, 0, false,
                                               grad_input_tensor_, &workspace_size, &executor),
            ACLNN_SUCCESS);

  EXPECT_EQ(aclnnKlDivBackward(nullptr, 0, executor, stream_), ACLNN_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);

  EXPECT_THAT(Floats(grad_input_), ElementsAre(0, -40));
  EXPECT_EQ(aclDestroyTensor(self), ACLNN_SUCCESS);
}

TEST_F(ExecutorTest, OfTwoStageTwosAtOnceOneRuns) {
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&context), ACL_SUCCESS);
  for (int round = 0; round < 100; ++round) {
    aclOpExecutor* executor = StageOne();
    aclnnStatus statuses[2] = {-1, -1};
    const auto run = [&](aclnnStatus* status) {
      EXPECT_EQ(aclrtSetCurrentContext(context), ACL_SUCCESS);
      *status = aclnnL1LossBackward(nullptr, 0, executor, stream_);
    };

    std::thread other(run, &statuses[0]);
    run(&statuses[1]);
    other.join();

    EXPECT_THAT(statuses, UnorderedElementsAre(ACLNN_SUCCESS, ACLNN_ERR_INNER_NULLPTR));
  }
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
}

// Sums a long target into one element, which takes scratch memory.
class WorkspaceTest : public conformance::DeviceTest {
 protected:
  static constexpr int64_t kLength = 1 << 20;

  static aclTensor* Create(int64_t length, const DeviceBuffer& buffer) {
    return aclCreateTensor(&length, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &length, 1,
                           buffer.address());
  }

  // Stage one, then stage two with a workspace that differs from what was reported.
  aclnnStatus Run(int64_t offset, int64_t size_change) {
    const DeviceBuffer long_data(Bytes(std::vector<float>(kLength, 1)));
    const DeviceBuffer out(Bytes({0}));
    aclTensor* target = Create(kLength, long_data);
    aclTensor* one = Create(1, out);
    uint64_t workspace_size = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(aclnnKlDivBackwardGetWorkspaceSize(target, one, target, /*reduction=*/0, false, one,
                                                 &workspace_size, &executor),
              ACLNN_SUCCESS);
    EXPECT_GT(workspace_size, 0u);
    const DeviceBuffer workspace(workspace_size + 64);
    const aclnnStatus status = aclnnKlDivBackward(static_cast<char*>(workspace.address()) + offset,
                                                  workspace_size + size_change, executor, stream_);
    EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
    if (status == ACLNN_SUCCESS) {
      EXPECT_EQ(Floats(out).front(), -kLength);
    }
    EXPECT_EQ(aclDestroyTensor(target), ACLNN_SUCCESS);
    EXPECT_EQ(aclDestroyTensor(one), ACLNN_SUCCESS);
    return status;
  }
};

TEST_F(WorkspaceTest, AsReportedOrMoreIsEnough) {
  EXPECT_EQ(Run(/*offset=*/0, /*size_change=*/0), ACLNN_SUCCESS);
  EXPECT_EQ(Run(/*offset=*/64, /*size_change=*/0), ACLNN_SUCCESS);
}

TEST_F(WorkspaceTest, TooSmallOrMisalignedIsRefused) {
  EXPECT_EQ(Run(/*offset=*/0, /*size_change=*/-1), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(Run(/*offset=*/16, /*size_change=*/0), ACLNN_ERR_PARAM_INVALID);
}

}  // namespace
}  // namespace opserve::host_cann
