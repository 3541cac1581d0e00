// The comparison itself: it accepts what the set's rules accept, and nothing else.
#include "tests/conformance/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace opserve::conformance {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A case whose output is a FLOAT view of one axis.
Case FloatCase(std::vector<double> expected, int64_t stride = 1, int64_t offset = 0,
               int64_t storage_elements = 1) {
  Case value_case;
  Tensor& output = value_case.output.emplace();
  output.dtype = "FLOAT";
  output.shape = {static_cast<int64_t>(expected.size())};
  output.strides = {stride};
  output.offset = offset;
  output.storage_shape = {storage_elements};
  value_case.expected = std::move(expected);
  value_case.atol = 1e-6;
  value_case.rtol = 1e-3;
  return value_case;
}

std::string Bytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

TEST(CompareTest, AcceptsByToleranceAndKindOfNumber) {
  const struct {
    double expected;
    double got;
    bool acceptable;
  } cases[] = {
      {1000, 1000.9, true}, {1000, 1001.1, false}, {1000, 998.9, false}, {0, 9e-7, true},
      {0, 2e-6, false},     {0, -0.0, true},       {kNan, kNan, true},   {kNan, 1, false},
      {1, kNan, false},     {kInf, kInf, true},    {kInf, -kInf, false}, {kInf, 3e38, false},
      {-kInf, -kInf, true}, {1, kInf, false},      {1e39, kInf, true},   {-1e39, kInf, false},
      {3e38, kInf, false},
  };
  for (const auto& [expected, got, acceptable] : cases) {
    const std::string difference =
        CompareElements(FloatCase({expected}), Bytes({static_cast<float>(got)}));
    EXPECT_EQ(difference.empty(), acceptable) << got << " for " << expected << ": " << difference;
  }
}

TEST(CompareTest, WidensEveryType) {
  const uint16_t halves[] = {0x3c00, 0xc000, 0x0001, 0x7bff, 0xfc00};
  const uint16_t bfloats[] = {0x3f80, 0xc000, 0x7f80};
  const double doubles[] = {0.1};
  const auto bytes = [](const auto& values) {
    return std::string(reinterpret_cast<const char*>(values), sizeof(values));
  };

  EXPECT_THAT(Widen("FLOAT16", bytes(halves)), ElementsAre(1, -2, 0x1p-24, 65504, -kInf));
  EXPECT_THAT(Widen("BF16", bytes(bfloats)), ElementsAre(1, -2, kInf));
  EXPECT_THAT(Widen("FLOAT", Bytes({0.5f})), ElementsAre(0.5));
  EXPECT_THAT(Widen("DOUBLE", bytes(doubles)), ElementsAre(0.1));
}

// A column of a 2 x 3 storage: elements 1 and 4.
TEST(CompareTest, StorageMustBeUntouchedOutsideTheView) {
  const Case value_case = FloatCase({5, 7}, /*stride=*/3, /*offset=*/1, /*storage_elements=*/6);
  std::string storage(value_case.output->storage_bytes(), kGuardByte);
  storage.replace(4, 4, Bytes({5}));
  storage.replace(16, 4, Bytes({7}));

  EXPECT_EQ(CompareStorage(value_case, storage), "");

  storage[8] = 0;
  EXPECT_THAT(CompareStorage(value_case, storage), HasSubstr("byte 8 of the storage was written"));
}

TEST(CompareTest, TheFirstDifferenceIsNamed) {
  const Case value_case = FloatCase({1, 2});

  EXPECT_EQ(CompareElements(value_case, Bytes({1, 3})), "element 1: 3 instead of 2");
  EXPECT_EQ(CompareElements(value_case, Bytes({1})), "1 elements instead of 2");
}

}  // namespace
}  // namespace opserve::conformance
