#include "kernels/cpu/math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/unit/kernels/test_tensor.h"

namespace opserve::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

// Distance in units of the last place that floats have at `exact`.
double UlpError(float value, double exact) {
  const float nearest = static_cast<float>(exact);
  if (value == nearest) return 0;
  int exponent;
  std::frexp(exact, &exponent);
  return std::abs(value - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

// A sample of all floats: steps that are no multiple of a power of two.
template <typename Check>
void ForSampledFloats(Check check) {
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 1009) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!std::isnan(value)) check(value);
  }
}

TEST(MathTest, ExpIsWithinOneUlpAndABit) {
  double worst = 0;
  ForSampledFloats([&](float x) {
    const double exact = std::exp(static_cast<double>(x));
    if (exact > std::numeric_limits<float>::max()) {
      ASSERT_EQ(Exp(x), kInfinity) << x;
    } else {
      worst = std::max(worst, UlpError(Exp(x), exact));
    }
  });
  EXPECT_LT(worst, 1.05);
}

TEST(MathTest, LogIsWithinOneUlpAndABit) {
  double worst = 0;
  ForSampledFloats([&](float x) {
    if (x <= 0 || x == kInfinity) return;
    worst = std::max(worst, UlpError(Log(x), std::log(static_cast<double>(x))));
  });
  EXPECT_LT(worst, 1.05);
}

struct Point {
  float x;
  float value;
};

void ExpectPoints(float (*function)(float), const std::vector<Point>& points) {
  for (const Point& point : points) {
    const float value = function(point.x);
    if (std::isnan(point.value)) {
      EXPECT_TRUE(std::isnan(value)) << point.x;
    } else {
      EXPECT_EQ(value, point.value) << point.x;
    }
  }
}

TEST(MathTest, ExpOfSpecialValues) {
  ExpectPoints([](float x) { return Exp(x); }, {{kInfinity, kInfinity},
                                                {-kInfinity, 0},
                                                {kNotANumber, kNotANumber},
                                                {0.0f, 1},
                                                {-0.0f, 1},
                                                {std::numeric_limits<float>::denorm_min(), 1},
                                                {88.7229f, kInfinity},
                                                {1e30f, kInfinity},
                                                {-103.0f, 0x1p-149f},  // 1.4 of the least subnormal
                                                {-103.9f, 0x1p-149f},
                                                {-104.0f, 0},
                                                {-1e30f, 0}});
  EXPECT_TRUE(std::isfinite(Exp(88.7228f)));
  EXPECT_EQ(Exp(-90.0f), static_cast<float>(std::exp(-90.0)));  // a subnormal
}

TEST(MathTest, LogOfSpecialValues) {
  ExpectPoints([](float x) { return Log(x); }, {{kInfinity, kInfinity},
                                                {0.0f, kNotANumber},
                                                {-0.0f, kNotANumber},
                                                {-1.0f, kNotANumber},
                                                {-0x1p-149f, kNotANumber},
                                                {-kInfinity, kNotANumber},
                                                {kNotANumber, kNotANumber},
                                                {1.0f, 0},
                                                {0x1p-149f, -103.278929903f},
                                                {0x1p-126f, -87.3365447505f}});
}

// The library's variants may contract products and sums, so that they are measured as well.
TEST(MathTest, ExpInTheLibraryIsWithinOneUlpAndABit) {
  std::vector<float> x;
  for (double value = -105; value < 89; value += 0x1p-11) x.push_back(static_cast<float>(value));
  const Layout layout = ContiguousLayout(Dtype::kFloat, {static_cast<int64_t>(x.size())});
  const Layout scalar = ContiguousLayout(Dtype::kFloat, {});
  std::vector<float> result(x.size());
  const float minus_one = -1;
  const void* inputs[] = {&minus_one, nullptr, x.data()};
  SerialTaskRunner runner;

  void* const outputs[] = {result.data()};
  MakeKernel("aclnnKlDivBackward", {.inputs = {{scalar}, {layout}, {layout}},
                                    .outputs = {{layout}},
                                    .attributes = {int64_t{0}, /*log_target=*/true}})
      ->Run(inputs, outputs, nullptr, runner);

  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(static_cast<double>(x[i]));
    if (exact > std::numeric_limits<float>::max()) {
      ASSERT_EQ(result[i], kInfinity) << x[i];
    } else {
      ASSERT_LT(UlpError(result[i], exact), 1.05) << x[i];
    }
  }
}

}  // namespace
}  // namespace opserve::kernels
