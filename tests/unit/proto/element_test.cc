#include "proto/dtypes/element.h"

#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"

namespace opserve {
namespace {

double FirstElement(Dtype dtype, const void* elements) {
  return VisitElement(dtype, [&]<typename T>(std::type_identity<T>) {
    return static_cast<double>(LoadElement<T>(elements, 0));
  });
}

TEST(ElementTest, EachDtypeIsVisitedWithItsType) {
  const float single = 1.5f;
  const double twice = 0.1;
  const uint16_t half = 0x3e00;
  const uint16_t brain = 0x3fc0;
  EXPECT_EQ(FirstElement(v1::DATA_TYPE_FLOAT, &single), 1.5);
  EXPECT_EQ(FirstElement(v1::DATA_TYPE_DOUBLE, &twice), 0.1);
  EXPECT_EQ(FirstElement(v1::DATA_TYPE_FLOAT16, &half), 1.5);
  EXPECT_EQ(FirstElement(v1::DATA_TYPE_BF16, &brain), 1.5);
}

TEST(ElementTest, ElementsMayLieAtAnyAddress) {
  const unsigned char bytes[] = {0, 0, 0x3c, 0, 0xc0, 0, 0};  // 1 and -2 from the second byte on
  EXPECT_EQ(static_cast<float>(LoadElement<Eigen::half>(bytes + 1, 0)), 1);
  EXPECT_EQ(static_cast<float>(LoadElement<Eigen::half>(bytes + 1, 1)), -2);
}

}  // namespace
}  // namespace opserve
