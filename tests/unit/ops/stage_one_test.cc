// What stage one says about a refused call. Which calls are refused is in the conformance set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_cat.h"
#include "aclnnop/aclnn_foreach_add_scalar_list.h"
#include "aclnnop/aclnn_kl_div_backward.h"
#include "aclnnop/aclnn_kl_div_target_backward.h"
#include "aclnnop/aclnn_l1_loss_backward.h"
#include "aclnnop/aclnn_logsoftmax_backward.h"
#include "tests/conformance/device_fixture.h"

namespace opserve::host_cann {
namespace {

struct Argument {
  std::vector<int64_t> shape = {2, 3};
  aclDataType dtype = ACL_FLOAT;
  aclFormat format = ACL_FORMAT_ND;
};

// Descriptors at an address that leads nowhere, destroyed at the end.
class StageOneTest : public conformance::DeviceTest {
 protected:
  void SetUp() override { aclGetRecentErrMsg(); }  // takes those of other tests away
  void TearDown() override {
    for (const aclTensor* tensor : tensors_) EXPECT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);
  }

  aclTensor* Create(const Argument& argument) {
    aclTensor* tensor = aclCreateTensor(
        argument.shape.data(), argument.shape.size(), argument.dtype, nullptr, 0, argument.format,
        argument.shape.data(), argument.shape.size(), reinterpret_cast<void*>(0x40));
    EXPECT_NE(tensor, nullptr);
    tensors_.push_back(tensor);
    return tensor;
  }

  // What a refused call with these arguments says; reports executors that it left.
  template <typename Call>
  static std::string MessageOf(Call call) {
    uint64_t workspace_size = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_NE(call(&workspace_size, &executor), ACLNN_SUCCESS);
    EXPECT_EQ(executor, nullptr);
    const char* message = aclGetRecentErrMsg();
    return message == nullptr ? "" : message;
  }

  std::string KlDivMessage(const Argument& grad, const Argument& self, const Argument& target,
                           const Argument& out) {
    return MessageOf([&](uint64_t* size, aclOpExecutor** executor) {
      return aclnnKlDivBackwardGetWorkspaceSize(Create(grad), Create(self), Create(target), 0,
                                                false, Create(out), size, executor);
    });
  }

  std::string L1LossMessage(const Argument& grad, const Argument& self, const Argument& target,
                            int64_t reduction, const Argument& grad_input) {
    return MessageOf([&](uint64_t* size, aclOpExecutor** executor) {
      return aclnnL1LossBackwardGetWorkspaceSize(Create(grad), Create(self), Create(target),
                                                 reduction, Create(grad_input), size, executor);
    });
  }

  std::string LogSoftmaxMessage(const Argument& grad, const Argument& output, int64_t dim,
                                const Argument& out) {
    return MessageOf([&](uint64_t* size, aclOpExecutor** executor) {
      return aclnnLogSoftmaxBackwardGetWorkspaceSize(Create(grad), Create(output), dim, Create(out),
                                                     size, executor);
    });
  }

 private:
  std::vector<const aclTensor*> tensors_;
};

TEST_F(StageOneTest, KlDivMessagesNameOperatorArgumentAndValue) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  const Argument fine;
  const struct {
    Argument grad, self, target, out;
    const char* message;
  } cases[] = {
      {fine,
       fine,
       fine,
       {{2, 3}, ACL_INT32},
       "EZ1001: KlDivBackward: argument out: type INT32; it must be FLOAT, FLOAT16, BF16 or "
       "DOUBLE"},
      {{{2, 3}, ACL_INT8},
       fine,
       fine,
       fine,
       "EZ1001: KlDivBackward: argument gradOutput: type INT8 is not supported"},
      {fine,
       {{2, 3}, ACL_DOUBLE},
       fine,
       {{2, 3}, ACL_DOUBLE},
       "EZ1001: KlDivBackward: DOUBLE does not mix with other dtypes: gradOutput is FLOAT, self "
       "DOUBLE, target FLOAT"},
      {fine,
       {{2, 3}, ACL_BF16},
       fine,
       fine,
       "EZ1001: KlDivBackward: argument out: dtype FLOAT asked for, but it can only be BF16"},
      {{std::vector<int64_t>(9, 1)},
       fine,
       fine,
       fine,
       "EZ1001: KlDivBackward: argument gradOutput: rank 9 is more than 8"},
      {fine,
       {{4, 3}},
       fine,
       {{4, 3}},
       "EZ1001: KlDivBackward: argument target: shape [2,3] does not broadcast with self [4,3]"},
      {fine,
       {{1, 3}},
       {{1, 3}},
       {{1, 3}},
       "EZ1001: KlDivBackward: argument gradOutput: shape [2,3] does not broadcast to [1,3], the "
       "broadcast shape of self and target"},
      {fine, fine, fine, {{3}}, "EZ1001: KlDivBackward: argument out: shape [3]; it must be [2,3]"},
      {{{1}},
       {{kHuge, 1}},
       {{1, kHuge}},
       {{kHuge, 1}},
       "EZ1001: KlDivBackward: argument target: broadcast with self: shape "
       "[1099511627776,1099511627776] takes 2^63 bytes or more"},
  };
  for (const auto& [grad, self, target, out, message] : cases) {
    EXPECT_EQ(KlDivMessage(grad, self, target, out), message);
  }
}

TEST_F(StageOneTest, NullPointersAreNamed) {
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  aclTensor* fine = Create({});

  EXPECT_EQ(aclnnKlDivTargetBackwardGetWorkspaceSize(fine, fine, nullptr, 0, false, nullptr, &size,
                                                     &executor),
            ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_STREQ(aclGetRecentErrMsg(),
               "EZ1001: KlDivTargetBackward: argument target: the pointer is null");
  EXPECT_EQ(aclnnKlDivTargetBackwardGetWorkspaceSize(fine, fine, nullptr, 0, false, fine, nullptr,
                                                     &executor),
            ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_STREQ(aclGetRecentErrMsg(),
               "EZ1001: KlDivTargetBackward: argument workspaceSize: the pointer is null");
}

TEST_F(StageOneTest, NullElementsOfListsAreRefused) {
  const auto tensors_of = [&](bool with_null) {
    const int64_t shape[] = {2, 3};
    const aclTensor* elements[] = {aclCreateTensor(shape, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND,
                                                   shape, 2, reinterpret_cast<void*>(0x40)),
                                   nullptr};
    return aclCreateTensorList(elements, with_null ? 2 : 1);
  };
  const aclTensorList* const with_null = tensors_of(true);
  const aclTensorList* const fine = tensors_of(false);
  const aclTensorList* const out = tensors_of(false);
  const aclScalar* no_scalar = nullptr;
  const aclScalarList* const scalars = aclCreateScalarList(&no_scalar, 1);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;

  EXPECT_EQ(aclnnCatGetWorkspaceSize(with_null, 0, Create({}), &size, &executor),
            ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_STREQ(aclGetRecentErrMsg(),
               "EZ1001: Cat: argument tensors: an element of the list is null");
  EXPECT_EQ(aclnnForeachAddScalarListGetWorkspaceSize(fine, scalars, out, &size, &executor),
            ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_STREQ(aclGetRecentErrMsg(),
               "EZ1001: ForeachAddScalarList: argument scalars: an element of the list is null");

  EXPECT_EQ(aclDestroyScalarList(scalars), ACLNN_SUCCESS);
  for (const aclTensorList* list : {with_null, fine, out}) {
    EXPECT_EQ(aclDestroyTensorList(list), ACLNN_SUCCESS);
  }
}

TEST_F(StageOneTest, KlDivTargetRefusesBlockedFormats) {
  EXPECT_EQ(MessageOf([&](uint64_t* size, aclOpExecutor** executor) {
              aclTensor* fine = Create({});
              aclTensor* blocked = Create({{2, 3}, ACL_FLOAT, ACL_FORMAT_FRACTAL_NZ});
              return aclnnKlDivTargetBackwardGetWorkspaceSize(fine, blocked, fine, 0, false, fine,
                                                              size, executor);
            }),
            "EZ1001: KlDivTargetBackward: argument self: storage format 29 is not supported");
}

TEST_F(StageOneTest, L1LossMessagesNameOperatorArgumentAndValue) {
  const Argument fine;
  const Argument mixed_integer = {{2, 3}, ACL_INT32};
  EXPECT_EQ(L1LossMessage(fine, fine, fine, 3, fine),
            "EZ1001: L1LossBackward: argument reduction: 3 is outside [0, 2]: none (0), mean (1), "
            "sum (2)");
  EXPECT_EQ(L1LossMessage(fine, mixed_integer, fine, 0, fine),
            "EZ1001: L1LossBackward: argument self: type INT32 is not supported");
  EXPECT_EQ(L1LossMessage(fine, fine, fine, 0, {{2, 3}, ACL_DOUBLE}),
            "EZ1001: L1LossBackward: argument gradInput: type DOUBLE; it must be FLOAT, FLOAT16 or "
            "BF16");
  EXPECT_EQ(L1LossMessage(fine, fine, {{4, 1, 1}}, 0, fine),
            "EZ1001: L1LossBackward: argument gradInput: shape [2,3]; it must be [4,2,3]");
}

TEST_F(StageOneTest, LogSoftmaxMessagesNameOperatorArgumentAndValue) {
  const Argument fine;
  EXPECT_EQ(LogSoftmaxMessage(fine, fine, 2, fine),
            "EZ1001: LogSoftmaxBackward: argument dim: 2 is outside [-2, 1] for shape [2,3]");
  EXPECT_EQ(LogSoftmaxMessage({{}}, {{}}, -2, {{}}),
            "EZ1001: LogSoftmaxBackward: argument dim: -2 is outside [-1, 0] for shape []");
  EXPECT_EQ(
      LogSoftmaxMessage({{2, 3}, ACL_BF16}, fine, 0, fine),
      "EZ1001: LogSoftmaxBackward: argument gradOutput: dtype BF16; it must be that of output, "
      "FLOAT");
  EXPECT_EQ(
      LogSoftmaxMessage(fine, fine, 0, {{2, 3}, ACL_INT64}),
      "EZ1001: LogSoftmaxBackward: argument out: type INT64; it must be FLOAT, FLOAT16, BF16 or "
      "DOUBLE");
}

TEST_F(StageOneTest, ADestroyedTensorIsRefused) {
  const int64_t shape[] = {2, 3};
  aclTensor* destroyed =
      aclCreateTensor(shape, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape, 2, nullptr);
  ASSERT_EQ(aclDestroyTensor(destroyed), ACLNN_SUCCESS);

  EXPECT_EQ(MessageOf([&](uint64_t* size, aclOpExecutor** executor) {
              aclTensor* fine = Create({});
              return aclnnLogSoftmaxBackwardGetWorkspaceSize(fine, destroyed, 0, fine, size,
                                                             executor);
            }),
            "EZ1001: LogSoftmaxBackward: argument output: the tensor is not alive");
}

}  // namespace
}  // namespace opserve::host_cann
