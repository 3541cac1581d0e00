#include "proto/dtypes/tensor_spec.h"

#include "gtest/gtest.h"

namespace opserve {
namespace {

constexpr Dtype F = v1::DATA_TYPE_FLOAT;

TEST(CheckShapeTest, RefusesWhatCannotBeATensor) {
  EXPECT_TRUE(CheckShape(F, {2, 0, int64_t{1} << 50}).ok());
  EXPECT_TRUE(CheckShape(F, Shape(8, 2)).ok());
  EXPECT_FALSE(CheckShape(F, Shape(9, 1)).ok());
  EXPECT_FALSE(CheckShape(F, {-1}).ok());
  EXPECT_FALSE(CheckShape(F, {int64_t{1} << 61}).ok());
  EXPECT_TRUE(CheckShape(v1::DATA_TYPE_INT8, {0, (int64_t{1} << 59) - 1}).ok());
  EXPECT_FALSE(CheckShape(v1::DATA_TYPE_INT8, {0, int64_t{1} << 59}).ok());
  EXPECT_FALSE(CheckShape(F, {0, int64_t{1} << 40, int64_t{1} << 40}).ok());
}

TEST(TensorSpecTest, SizesOfContiguousTensors) {
  EXPECT_EQ(NumElements({}), 1);
  EXPECT_EQ(NumElements(Shape{2, 3}), 6);
  EXPECT_EQ(NumBytes({F, {2, 3}}), 24);
  EXPECT_EQ(NumBytes({v1::DATA_TYPE_BF16, {}}), 2);
  EXPECT_EQ(NumBytes({v1::DATA_TYPE_DOUBLE, {0, 7}}), 0);
  EXPECT_EQ(ShapeText(Shape{2, 3}), "[2,3]");
}

}  // namespace
}  // namespace opserve
