#include <gtest/gtest.h>

#include <cstdint>

#include "acl/acl.h"
#include "aclnn/opdev/op_errno.h"

namespace opserve::host_cann {
namespace {

// Creation, size and destruction of an array kind, as functions of the ABI.
template <typename Array, typename Value>
void CheckArray(Array* (*create)(const Value*, uint64_t),
                aclnnStatus (*get_size)(const Array*, uint64_t*),
                aclnnStatus (*destroy)(const Array*)) {
  const Value values[] = {Value(1), Value(0), Value(1)};
  uint64_t size = 0;

  Array* array = create(values, 3);
  ASSERT_NE(array, nullptr);
  EXPECT_EQ(get_size(array, &size), ACLNN_SUCCESS);
  EXPECT_EQ(size, 3u);
  EXPECT_EQ(get_size(array, nullptr), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(get_size(nullptr, &size), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(destroy(array), ACLNN_SUCCESS);
  EXPECT_EQ(destroy(array), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(get_size(array, &size), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(destroy(nullptr), ACLNN_SUCCESS);

  EXPECT_EQ(create(nullptr, 3), nullptr);
  EXPECT_EQ(create(values, UINT64_MAX), nullptr);
}

TEST(AttributesTest, ArraysOfEachKind) {
  CheckArray(aclCreateIntArray, aclGetIntArraySize, aclDestroyIntArray);
  CheckArray(aclCreateFloatArray, aclGetFloatArraySize, aclDestroyFloatArray);
  CheckArray(aclCreateBoolArray, aclGetBoolArraySize, aclDestroyBoolArray);
}

TEST(AttributesTest, ScalarsCopyTheirValue) {
  float value = 1;
  aclScalar* scalar = aclCreateScalar(&value, ACL_FLOAT);
  ASSERT_NE(scalar, nullptr);
  EXPECT_EQ(aclDestroyScalar(scalar), ACLNN_SUCCESS);
  EXPECT_EQ(aclDestroyScalar(scalar), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(aclCreateScalar(nullptr, ACL_FLOAT), nullptr);
}

aclTensor* CreateTensor() {
  const int64_t shape[] = {2};
  return aclCreateTensor(shape, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape, 1, nullptr);
}

TEST(AttributesTest, TensorListsTakeTheirTensorsOver) {
  const aclTensor* tensors[] = {CreateTensor(), CreateTensor()};
  uint64_t size = 0;

  aclTensorList* list = aclCreateTensorList(tensors, 2);
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(aclGetTensorListSize(list, &size), ACLNN_SUCCESS);
  EXPECT_EQ(size, 2u);
  EXPECT_EQ(aclDestroyTensorList(list), ACLNN_SUCCESS);

  EXPECT_EQ(aclDestroyTensor(tensors[0]), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(aclDestroyTensor(tensors[1]), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(aclDestroyTensorList(list), ACLNN_ERR_PARAM_INVALID);
}

TEST(AttributesTest, ARefusedListLeavesTheTensorsToTheCaller) {
  const aclTensor* dead = CreateTensor();
  ASSERT_EQ(aclDestroyTensor(dead), ACLNN_SUCCESS);
  const aclTensor* tensors[] = {CreateTensor(), dead};

  EXPECT_EQ(aclCreateTensorList(tensors, 2), nullptr);

  EXPECT_EQ(aclDestroyTensor(tensors[0]), ACLNN_SUCCESS);
}

TEST(AttributesTest, ListsMayHaveNullElements) {
  float value = 1;
  const aclTensor* tensors[] = {nullptr, CreateTensor(), nullptr};
  const aclScalar* scalars[] = {aclCreateScalar(&value, ACL_FLOAT), nullptr};
  uint64_t size = 0;

  aclTensorList* const tensor_list = aclCreateTensorList(tensors, 3);
  ASSERT_NE(tensor_list, nullptr);
  EXPECT_EQ(aclGetTensorListSize(tensor_list, &size), ACLNN_SUCCESS);
  EXPECT_EQ(size, 3u);
  EXPECT_EQ(aclDestroyTensorList(tensor_list), ACLNN_SUCCESS);
  EXPECT_EQ(aclDestroyTensor(tensors[1]), ACLNN_ERR_PARAM_INVALID) << "the list owned it";

  aclScalarList* const scalar_list = aclCreateScalarList(scalars, 2);
  ASSERT_NE(scalar_list, nullptr);
  EXPECT_EQ(aclGetScalarListSize(scalar_list, &size), ACLNN_SUCCESS);
  EXPECT_EQ(size, 2u);
  EXPECT_EQ(aclDestroyScalarList(scalar_list), ACLNN_SUCCESS);
}

TEST(AttributesTest, ScalarListsTakeTheirScalarsOver) {
  float value = 1;
  const aclScalar* scalars[] = {aclCreateScalar(&value, ACL_FLOAT)};

  aclScalarList* list = aclCreateScalarList(scalars, 1);
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(aclDestroyScalarList(list), ACLNN_SUCCESS);

  EXPECT_EQ(aclDestroyScalar(scalars[0]), ACLNN_ERR_PARAM_INVALID);
}

}  // namespace
}  // namespace opserve::host_cann
