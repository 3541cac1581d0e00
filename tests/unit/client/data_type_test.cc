#include "client/cpp/data_type.h"

#include <bit>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "proto/dtypes/dtype.h"

namespace opserve {
namespace {

TEST(DataTypeTest, NamesAreThoseOfTheProtocolWithoutPrefix) {
  for (const DataType dtype :
       {kFloat, kFloat16, kBf16, kDouble, kInt8, kUint8, kInt16, kInt32, kInt64, kBool}) {
    EXPECT_EQ(ParseDataType(DataTypeName(dtype)), dtype) << DataTypeName(dtype);
  }
  EXPECT_EQ(DataTypeName(kFloat16), "FLOAT16");
  EXPECT_EQ(ParseDataType("bf16"), kBf16);
  EXPECT_EQ(ParseDataType("int8"), kInt8);
  EXPECT_EQ(ParseDataType("unspecified"), std::nullopt);
  EXPECT_EQ(ParseDataType("complex64"), std::nullopt);
  EXPECT_EQ(DataTypeName(static_cast<DataType>(99)), "UNKNOWN");
  EXPECT_EQ(DataTypeBytes(static_cast<DataType>(99)), 0u);
}

template <typename T>
void ExpectTheTypeOf(const DtypeFacts& facts, int* num_found) {
  if (kDataTypeOf<T> != facts.dtype) return;
  EXPECT_EQ(static_cast<int64_t>(sizeof(T)), facts.bytes) << facts.name;
  ++*num_found;
}

TEST(DataTypeTest, EachDtypeHasOneCppType) {
  for (const DtypeFacts& facts : AllDtypes()) {
    int num_found = 0;
    ExpectTheTypeOf<float>(facts, &num_found);
    ExpectTheTypeOf<Float16>(facts, &num_found);
    ExpectTheTypeOf<Bf16>(facts, &num_found);
    ExpectTheTypeOf<double>(facts, &num_found);
    ExpectTheTypeOf<int8_t>(facts, &num_found);
    ExpectTheTypeOf<uint8_t>(facts, &num_found);
    ExpectTheTypeOf<int16_t>(facts, &num_found);
    ExpectTheTypeOf<int32_t>(facts, &num_found);
    ExpectTheTypeOf<int64_t>(facts, &num_found);
    ExpectTheTypeOf<bool>(facts, &num_found);
    EXPECT_EQ(num_found, 1) << facts.name;
  }
}

TEST(Float16Test, EveryValueSurvivesTheWayThroughFloat) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const Float16 half{static_cast<uint16_t>(bits)};
    const float value = half.ToFloat();
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(Float16::FromFloat(value).ToFloat())) << bits;
    } else {
      ASSERT_EQ(Float16::FromFloat(value).bits, bits);
    }
  }
}

TEST(Float16Test, ValuesBetweenTwoRoundToTheNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const float below = Float16{static_cast<uint16_t>(bits)}.ToFloat();
    const float above = Float16{static_cast<uint16_t>(bits + 1)}.ToFloat();
    const float middle = below + (above - below) / 2;
    ASSERT_LT(below, above);
    ASSERT_EQ(Float16::FromFloat(middle).bits, bits + (bits & 1));
    ASSERT_EQ(Float16::FromFloat(std::nextafter(middle, below)).bits, bits);
    ASSERT_EQ(Float16::FromFloat(-std::nextafter(middle, above)).bits, 0x8000 | (bits + 1));
  }
}

TEST(Float16Test, KnownValues) {
  struct Case {
    float value;
    uint16_t bits;
  };
  const Case kCases[] = {
      {1.0f, 0x3c00},     {-2.0f, 0xc000},    {65504.0f, 0x7bff}, {65519.0f, 0x7bff},
      {65520.0f, 0x7c00}, {0x1p-24f, 0x0001}, {0x1p-25f, 0x0000}, {0x1.8p-25f, 0x0001},
      {0x1p-14f, 0x0400}, {-0.0f, 0x8000},    {INFINITY, 0x7c00}, {1e30f, 0x7c00},
  };
  for (const Case& c : kCases) EXPECT_EQ(Float16::FromFloat(c.value).bits, c.bits) << c.value;
}

TEST(Bf16Test, RoundsToNearestTiesToEven) {
  struct Case {
    uint32_t value;
    uint16_t bits;
  };
  const Case kCases[] = {
      {0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82},
      {0x7f7fffff, 0x7f80}, {0x7f800000, 0x7f80}, {0x80000001, 0x8000}, {0x7f800001, 0x7fc0},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(Bf16::FromFloat(std::bit_cast<float>(c.value)).bits, c.bits) << std::hex << c.value;
  }
  EXPECT_EQ(Bf16{0xc040}.ToFloat(), -3.0f);
}

}  // namespace
}  // namespace opserve
