#include "client/cli/arrays/array_text.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opserve::cli {
namespace {

using testing::HasSubstr;

// A result that views the values it was made from.
template <typename T>
class Values {
 public:
  Values(std::vector<int64_t> shape, std::vector<T> values)
      : values_(std::move(values)),
        piece_(reinterpret_cast<const char*>(values_.data()), values_.size() * sizeof(T)),
        result_(OutputOf{}, kDataTypeOf<T>, std::move(shape), absl::MakeConstSpan(&piece_, 1),
                nullptr) {}

  const Result& result() const { return result_; }

 private:
  std::vector<T> values_;
  absl::string_view piece_;
  Result result_;
};

// BOOL, of these bytes.
Result Flags(std::vector<char> bytes) {
  struct Owner {
    std::vector<char> bytes;
    absl::string_view piece;
  };
  auto owner = std::make_shared<Owner>();
  owner->bytes = std::move(bytes);
  owner->piece = {owner->bytes.data(), owner->bytes.size()};
  return {OutputOf{},
          kBool,
          {static_cast<int64_t>(owner->bytes.size())},
          absl::MakeConstSpan(&owner->piece, 1),
          owner};
}

Values<float> Iota(std::vector<int64_t> shape, size_t num_elements) {
  std::vector<float> values(num_elements);
  std::iota(values.begin(), values.end(), 0.0f);
  return {std::move(shape), std::move(values)};
}

TEST(SummarizeTest, LooksAtFiniteValuesOnly) {
  const float nan = std::nanf("");
  const Values<float> values({5}, {nan, -2, INFINITY, 5, -INFINITY});

  const ValueSummary summary = Summarize(values.result());

  EXPECT_EQ(summary.num_elements, 5);
  EXPECT_EQ(summary.num_finite, 2);
  EXPECT_EQ(summary.num_nan, 1);
  EXPECT_EQ(summary.minimum, -2);
  EXPECT_EQ(summary.maximum, 5);
  EXPECT_EQ(summary.mean, 1.5);
}

TEST(SummarizeTest, WidensEveryType) {
  EXPECT_EQ(Summarize(Values<Float16>({1}, {Float16{0x3e00}}).result()).mean, 1.5);
  EXPECT_EQ(Summarize(Values<Bf16>({1}, {Bf16{0x3fc0}}).result()).mean, 1.5);
  EXPECT_EQ(Summarize(Values<double>({1}, {1.1}).result()).mean, 1.1);
  EXPECT_EQ(Summarize(Values<float>({0}, {}).result()).num_finite, 0);
}

TEST(FormatValuesTest, NestsAsNumpyDoes) {
  EXPECT_EQ(FormatValues(Values<double>({}, {1.5}).result(), 80), "1.5");
  EXPECT_EQ(FormatValues(Values<float>({0}, {}).result(), 80), "[]");
  EXPECT_EQ(FormatValues(Values<float>({1 << 20, 0}, {}).result(), 80), "[]");
  EXPECT_EQ(FormatValues(Iota({3}, 3).result(), 80), "[0, 1, 2]");
  EXPECT_EQ(FormatValues(Values<float>({2, 2}, {1, -10, 0.1f, NAN}).result(), 80),
            "[[  1, -10],\n [0.1, nan]]");
  EXPECT_EQ(FormatValues(Iota({2, 1, 2}, 4).result(), 80), "[[[0, 1]],\n [[2, 3]]]");
}

TEST(FormatValueTest, IsTheShortestThatIsReadAsTheSame) {
  struct Case {
    DataType dtype;
    double value;
    const char* text;
  };
  const Case kCases[] = {
      {kFloat, -0.05f, "-0.05"},
      {kFloat, 0.1f, "0.1"},
      {kFloat, 10, "10"},
      {kFloat, 100000, "100000"},
      {kFloat, 1e20f, "1e+20"},
      {kFloat, 1.0f / 3, "0.33333334"},
      {kFloat, 16777217.0, "16777216"},  // between two: to even
      {kFloat, 1.17549435e-38f, "1.1754944e-38"},
      {kFloat, 3.40282347e+38f, "3.4028235e+38"},
      {kFloat, -0.0f, "-0"},
      {kFloat, 1.0000001f, "1.0000001"},
      {kFloat16, 0.0999755859375, "0.1"},
      {kFloat16, 65504, "65500"},  // as NumPy has it
      {kBf16, 0.10009765625, "0.1"},
      {kBf16, 3.140625, "3.14"},
      {kDouble, -0.05, "-0.05"},
      {kDouble, 1.0 / 3, "0.33333333"},
      {kInt64, 1.5, "1.5"},  // a mean
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(FormatValue(c.dtype, c.value), c.text) << DataTypeName(c.dtype) << " " << c.value;
  }
}

TEST(ValuesToJsonTest, FloatsAreShortestAndReadAsTheSame) {
  const Values<float> floats({3}, {-0.05f, 1.0f / 3, -0.0f});
  EXPECT_EQ(ValuesToJson(floats.result()).dump(), "[-0.05,0.33333334,-0.0]");
  EXPECT_EQ(ValuesToJson(Values<double>({1}, {1.0 / 3}).result()).dump(), "[0.3333333333333333]");
}

TEST(FormatValuesTest, IntegersAreExactAndBoolsAreWords) {
  EXPECT_EQ(FormatValues(Values<int64_t>({2}, {INT64_MIN, INT64_MAX}).result(), 80),
            "[-9223372036854775808,  9223372036854775807]");
  EXPECT_EQ(FormatValues(Values<uint8_t>({2}, {255, 0}).result(), 80), "[255,   0]");
  EXPECT_EQ(FormatValues(Values<int8_t>({1}, {-1}).result(), 80), "[-1]");
  EXPECT_EQ(FormatValues(Values<int32_t>({1}, {123456789}).result(), 80), "[123456789]");
  EXPECT_EQ(FormatValues(Flags({1, 0, 2}), 80), "[ true, false,  true]");
}

TEST(ValuesToJsonTest, IntegersAreExactAndBoolsAreBools) {
  EXPECT_EQ(ValuesToJson(Values<int64_t>({2}, {INT64_MIN, INT64_MAX}).result()).dump(),
            "[-9223372036854775808,9223372036854775807]");
  EXPECT_EQ(ValuesToJson(Flags({1, 0})).dump(), "[true,false]");
}

TEST(SummarizeTest, ComparesIntegersExactly) {
  const Values<int64_t> values({3}, {INT64_MAX - 1, INT64_MAX, INT64_MAX - 2});
  const ValueSummary summary = Summarize(values.result());
  EXPECT_EQ(summary.num_finite, 3);
  EXPECT_EQ(summary.maximum_at, 1);
  EXPECT_EQ(summary.minimum_at, 2);
  EXPECT_EQ(Summarize(Flags({1, 0, 0, 1})).mean, 0.5);
}

TEST(FormatValuesTest, LinesStayWithinTheWidth) {
  EXPECT_EQ(FormatValues(Iota({7}, 7).result(), 10), "[0, 1, 2,\n 3, 4, 5,\n 6]");
}

TEST(FormatValuesTest, CutsLargeArrays) {
  EXPECT_EQ(FormatValues(Iota({1001}, 1001).result(), 80),
            "[   0,    1,    2, ...,  998,  999, 1000]");
  const std::string matrix = FormatValues(Iota({100, 20}, 2000).result(), 80);
  EXPECT_THAT(matrix, HasSubstr("[   0,    1,    2, ...,   17,   18,   19],\n"));
  EXPECT_THAT(matrix, HasSubstr("],\n ...,\n [1940,"));
}

TEST(ValuesToJsonTest, WhatJsonCannotSayIsAString) {
  const Values<float> values({4}, {0.5f, NAN, INFINITY, -INFINITY});
  EXPECT_EQ(ValuesToJson(values.result()).dump(), R"([0.5,"nan","inf","-inf"])");
  EXPECT_EQ(ValuesToJson(Iota({2000}, 2000).result()).size(), 1000u);
}

}  // namespace
}  // namespace opserve::cli
