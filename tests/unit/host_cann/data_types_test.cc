// The functions about element types. (Their values: tests/unit/abi.)
#include <gtest/gtest.h>

#include <cmath>

#include "acl/acl.h"

namespace {

TEST(DataTypesTest, ElementSizes) {
  const struct {
    aclDataType type;
    size_t bytes;
  } kSizes[] = {{ACL_DT_UNDEFINED, 0}, {ACL_FLOAT, 4},       {ACL_FLOAT16, 2},
                {ACL_INT8, 1},         {ACL_INT32, 4},       {ACL_UINT8, 1},
                {ACL_INT16, 2},        {ACL_UINT16, 2},      {ACL_UINT32, 4},
                {ACL_INT64, 8},        {ACL_UINT64, 8},      {ACL_DOUBLE, 8},
                {ACL_BOOL, 1},         {ACL_STRING, 0},      {ACL_COMPLEX64, 8},
                {ACL_COMPLEX128, 16},  {ACL_BF16, 2},        {ACL_INT4, 1},
                {ACL_UINT1, 1},        {ACL_COMPLEX32, 4},   {ACL_HIFLOAT8, 1},
                {ACL_FLOAT8_E5M2, 1},  {ACL_FLOAT8_E8M0, 1}, {static_cast<aclDataType>(5), 0}};
  for (const auto& row : kSizes) EXPECT_EQ(aclDataTypeSize(row.type), row.bytes) << row.type;
}

TEST(DataTypesTest, HalfConversions) {
  const struct {
    float wide;
    aclFloat16 half;
  } kExact[] = {{0.0f, 0x0000},         {-0.0f, 0x8000},    {1.0f, 0x3C00},
                {-2.0f, 0xC000},        {65504.0f, 0x7BFF}, {5.9604645e-8f, 0x0001},
                {6.1035156e-5f, 0x0400}};
  for (const auto& row : kExact) {
    EXPECT_EQ(aclFloatToFloat16(row.wide), row.half) << row.wide;
    EXPECT_EQ(aclFloat16ToFloat(row.half), row.wide) << row.half;
  }
  const struct {
    float wide;
    aclFloat16 half;
  } kRounded[] = {{1.00048828125f, 0x3C00},  // half way, to even
                  {1.00146484375f, 0x3C02},  // half way, to even
                  {2047.9999f, 0x6800},      // carries into the exponent
                  {1e-9f, 0x0000},          {1e9f, 0x7BFF}, {-INFINITY, 0xFBFF}};
  for (const auto& row : kRounded) EXPECT_EQ(aclFloatToFloat16(row.wide), row.half) << row.wide;
  EXPECT_EQ(aclFloatToFloat16(NAN) & 0x7FFF, 0x7BFF);
  EXPECT_EQ(aclFloat16ToFloat(0x7C00), 65536.0f);
  EXPECT_EQ(aclFloat16ToFloat(0x7E00), 98304.0f);
}

}  // namespace
