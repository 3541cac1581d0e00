#include "kernels/cpu/math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "kernels/cpu/error_function.h"
#include "kernels/cpu/exponentials.h"
#include "kernels/cpu/float64.h"
#include "kernels/cpu/logarithms.h"
#include "kernels/cpu/powers.h"
#include "kernels/cpu/remainders.h"
#include "kernels/cpu/sigmoid.h"
#include "kernels/cpu/tanh_gelu.h"
#include "kernels/cpu/trigonometry.h"
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

struct Function {
  const char* name;
  float (*function)(float);
  double (*exact)(double);
};

// In the middle the difference of logarithms would cancel out.
double LogitOf(double x) {
  return std::fabs(x - 0.5) < 0.25 ? 2 * std::atanh(2 * x - 1) : std::log(x) - std::log1p(-x);
}
double SigmoidOf(double x) { return 1 / (1 + std::exp(-x)); }
double NormalBelow(double x) { return 0.5 * std::erfc(x * -0.70710678118654752440); }
double NormalAt(double x) { return std::exp(-0.5 * x * x) * 0.39894228040143267794; }
// The power of e in the approximation of gelu by tanh, and x times its derivative.
double PowerOfTanhGelu(double x) {
  return std::sqrt(8 / std::numbers::pi) * (x + 0.044715 * x * x * x);
}
double SlopeOfTanhGelu(double x) {
  return std::sqrt(8 / std::numbers::pi) * (x + 3 * 0.044715 * x * x * x);
}

const Function kFunctions[] = {
    {"Expm1", Expm1, std::expm1},
    {"Exp2", Exp2, std::exp2},
    {"Tanh", Tanh, std::tanh},
    {"Softplus", [](float x) { return Softplus(x); }, [](double x) { return Softplus(x); }},
    {"Log1p", Log1p, std::log1p},
    {"Log2", Log2, std::log2},
    {"Log10", Log10, std::log10},
    {"Logit", Logit, LogitOf},
    {"Erf", Erf, std::erf},
    {"Erfc", Erfc, std::erfc},
    {"Asin", Asin, std::asin},
    {"Acos", Acos, std::acos},
    {"Atan", Atan, std::atan},
    {"Atan2", [](float x) { return Atan2(x, 1.37f); },
     [](double x) { return std::atan2(x, double{1.37f}); }},
    {"Atan2 of the left", [](float x) { return Atan2(x, -1.37f); },
     [](double x) { return std::atan2(x, -double{1.37f}); }},
    {"Atan2 of other widths", [](float x) { return Atan2(1.73f, x); },
     [](double x) { return std::atan2(double{1.73f}, x); }},
    {"Atanh", Atanh, std::atanh},
    {"Sin", [](float x) { return std::fabs(x) < kMaxAngle ? SineOf(x, 0) : kNotANumber; },
     [](double x) { return std::fabs(x) < kMaxAngle ? std::sin(x) : kNotANumber; }},
    {"Cos", [](float x) { return std::fabs(x) < kMaxAngle ? SineOf(x, 1) : kNotANumber; },
     [](double x) { return std::fabs(x) < kMaxAngle ? std::cos(x) : kNotANumber; }},
    {"Tan", [](float x) { return std::fabs(x) < kMaxAngle ? TangentOf(x) : kNotANumber; },
     [](double x) { return std::fabs(x) < kMaxAngle ? std::tan(x) : kNotANumber; }},
    {"Gelu", Gelu, [](double x) { return std::isinf(x) && x < 0 ? -0.0 : x * NormalBelow(x); }},
    {"FastGelu",
     [](float x) { return FastGelu::Takes(x, nullptr) ? FastGelu::Of(x, nullptr) : Gelu(x); },
     [](double x) { return std::isinf(x) && x < 0 ? -0.0 : x * NormalBelow(x); }},
    {"Sigmoid", [](float x) { return TimesSigmoid(1.0f, x); }, SigmoidOf},
    {"Silu", [](float x) { return TimesSigmoid(x, x); }, [](double x) { return x * SigmoidOf(x); }},
    {"TimesSilu", [](float x) { return TimesSilu(1.0f, x); },
     [](double x) { return x * SigmoidOf(x); }},
    {"TanhGelu", TanhGelu<float>, [](double x) { return x * SigmoidOf(PowerOfTanhGelu(x)); }},
    {"TimesTanhGelu", [](float x) { return TimesTanhGelu(1.0f, x); },
     [](double x) { return x * SigmoidOf(PowerOfTanhGelu(x)); }},
};

// Results that are special, signs of zeros among them, and distances in floats from the others.
TEST(MathTest, FunctionsAreWithinTwoUlpOfTheRoundedResult) {
  const auto order_of = [](float value) {
    const auto bits = std::bit_cast<int32_t>(value);
    return bits < 0 ? -static_cast<int64_t>(bits & 0x7fffffff) : int64_t{bits};
  };
  for (const Function& f : kFunctions) {
    int64_t worst = 0;
    const auto check = [&](float x) {
      const auto exact = static_cast<float>(f.exact(x));
      const float value = f.function(x);
      if (std::isnan(exact)) {
        ASSERT_TRUE(std::isnan(value)) << f.name << " " << x;
        return;
      }
      ASSERT_EQ(std::signbit(value), std::signbit(exact)) << f.name << " " << x;
      worst = std::max(worst, std::abs(order_of(value) - order_of(exact)));
    };
    ForSampledFloats(check);
    for (const float x : {0.0f, -0.0f, 1.0f, -1.0f, kInfinity, -kInfinity, kNotANumber, -100.0f,
                          100.0f, 0x1p-149f, -0x1p-149f, 0x1p-126f}) {
      check(x);
    }
    EXPECT_LE(worst, 2) << f.name;
  }
}

TEST(MathTest, Atan2OfZerosAndInfinitiesIsThatOfTheStandard) {
  const float values[] = {0.0f, -0.0f, 1.0f, -1.0f, kInfinity, -kInfinity, kNotANumber};
  for (const float y : values) {
    for (const float x : values) {
      const float value = Atan2(y, x);
      const float exact = std::atan2(y, x);
      if (std::isnan(exact)) {
        EXPECT_TRUE(std::isnan(value)) << y << " " << x;
      } else {
        EXPECT_EQ(std::signbit(value), std::signbit(exact)) << y << " " << x;
        EXPECT_FLOAT_EQ(value, exact) << y << " " << x;
      }
    }
  }
}

TEST(MathTest, RemaindersWithShortQuotientsAreExact) {
  uint32_t random = 1;
  const auto next = [&] {
    random = random * 1664525 + 1013904223;
    return random;
  };
  int num_short = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    const auto a = std::bit_cast<float>(next());
    // Exponents near a's, else hardly any quotient would be short.
    const uint32_t exponents = (next() >> 27) << 23;
    const auto b = std::bit_cast<float>(std::bit_cast<uint32_t>(a) - exponents + (next() >> 9));
    if (!HasShortQuotient(a, b)) continue;
    ++num_short;
    ASSERT_EQ(std::bit_cast<uint32_t>(ShortTruncatedRemainder(a, b)),
              std::bit_cast<uint32_t>(std::fmod(a, b)))
        << a << " " << b;
    const double rest = std::fmod(double{a}, double{b});
    const double whole = (double{a} - rest) / b - (rest != 0 && (rest < 0) != (b < 0) ? 1 : 0);
    ASSERT_EQ(ShortFlooredQuotient(a, b), static_cast<float>(whole)) << a << " " << b;
  }
  EXPECT_GT(num_short, 100'000);
  for (const float b : {0.0f, -0.0f, kInfinity, kNotANumber}) EXPECT_FALSE(HasShortQuotient(1, b));
  for (const float a : {kInfinity, kNotANumber}) EXPECT_FALSE(HasShortQuotient(a, 1));
}

struct Gradient {
  const char* name;
  float (*function)(float gradient, float x);
  double (*exact)(double gradient, double x);
  double (*terms)(double x);  // the sum of the derivative's terms without their signs
};

const Gradient kGradients[] = {
    {"Gelu", GeluGradient,
     [](double gradient, double x) { return gradient * (NormalBelow(x) + x * NormalAt(x)); },
     [](double x) { return NormalBelow(x) + std::abs(x) * NormalAt(x); }},
    {"Silu", [](float gradient, float x) { return SwishGradientAt(gradient, x); },
     [](double gradient, double x) {
       return gradient * (SigmoidOf(x) + x * SigmoidOf(x) * SigmoidOf(-x));
     },
     [](double x) { return SigmoidOf(x) + std::abs(x) * SigmoidOf(x) * SigmoidOf(-x); }},
    {"TanhGelu", [](float gradient, float x) { return TanhGeluGradient(gradient, x); },
     [](double gradient, double x) {
       const double z = PowerOfTanhGelu(x);
       return gradient * (SigmoidOf(z) + SlopeOfTanhGelu(x) * SigmoidOf(z) * SigmoidOf(-z));
     },
     [](double x) {
       const double z = PowerOfTanhGelu(x);
       return SigmoidOf(z) + std::abs(SlopeOfTanhGelu(x)) * SigmoidOf(z) * SigmoidOf(-z);
     }},
    {"Sigmoid", [](float gradient, float x) { return gradient * SigmoidSlope(x); },
     [](double gradient, double x) { return gradient * SigmoidOf(x) * SigmoidOf(-x); },
     [](double x) { return SigmoidOf(x) * SigmoidOf(-x); }},
};

TEST(MathTest, GradientsAreWithinTwoUlpAndTwoRoundingsOfTheirTerms) {
  for (const Gradient& g : kGradients) {
    double worst = 0;
    uint32_t random = 1;
    ForSampledFloats([&](float x) {
      random = random * 1664525 + 1013904223;
      const float gradient = 1 + static_cast<float>(random >> 9) * 0x1p-23f;
      const auto exact = static_cast<float>(g.exact(gradient, x));
      if (std::isnan(exact)) return;
      const double allowed = 2 * std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23) +
                             2 * 0x1p-24 * gradient * g.terms(x);
      worst = std::max(worst, std::abs(g.function(gradient, x) - exact) / allowed);
    });
    EXPECT_LE(worst, 1) << g.name;
  }
}

// Distance in units of the last place that float64 has at `exact`.
double UlpErrorOfDouble(double value, long double exact) {
  if (value == static_cast<double>(exact)) return 0;
  int exponent;
  std::frexp(exact, &exponent);
  const long double unit = std::ldexp(1.0L, std::max(exponent - 53, -1074));
  return static_cast<double>(std::abs(value - exact) / unit);
}

struct WideFunction {
  const char* name;
  double (*function)(double);
  long double (*exact)(long double);
  double least;  // the range
  double most;
};

const WideFunction kWideFunctions[] = {
    {"exp", VectorExp, std::exp, -745, 709.7},
    {"log", VectorLog, std::log, 0, std::numeric_limits<double>::max()},
    {"log of the complement", VectorLogOfComplement, [](long double x) { return std::log1p(-x); },
     0, 1},
    {"logit", VectorLogit, [](long double x) { return std::log(x) - std::log1p(-x); }, 0, 0.4375},
    {"logit above", VectorLogit, [](long double x) { return std::log(x) - std::log1p(-x); }, 0.5625,
     1},
    // In the middle the difference of logarithms would cancel out.
    {"logit in the middle", VectorLogit, [](long double x) { return 2 * std::atanh(2 * x - 1); },
     0.4375, 0.5625},
};

TEST(MathTest, FunctionsOfFloat64AreWithinTwoUlpAndAHalf) {
  for (const WideFunction& f : kWideFunctions) {
    double worst = 0;
    const auto check = [&](double x) {
      if (x <= f.least || x >= f.most) return;
      worst = std::max(worst, UlpErrorOfDouble(f.function(x), f.exact(x)));
    };
    // Steps that are no multiple of a power of two, through all magnitudes and through the range.
    for (uint64_t bits = 1; bits < 0x7ff0000000000000; bits += 0x00001ac3f7d29b65) {
      check(std::bit_cast<double>(bits));
      check(-std::bit_cast<double>(bits));
      check(1 - std::bit_cast<double>(bits));
    }
    for (int i = 1; i < 200000; ++i) check(f.least + (f.most - f.least) * (i / 200000.1));
    EXPECT_LE(worst, 2.5) << f.name;
  }
}

TEST(MathTest, FunctionsOfFloat64OfSpecialValues) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const struct {
    double (*function)(double);
    double x;
    double value;
  } points[] = {{VectorExp, -kInf, 0},
                {VectorExp, kInf, kInf},
                {VectorExp, 710, kInf},
                {VectorExp, -746, 0},
                {VectorExp, 0, 1},
                {VectorExp, kNan, kNan},
                {VectorLog, 0, -kInf},
                {VectorLog, 1, 0},
                {VectorLog, kInf, kInf},
                {VectorLog, -1, kNan},
                {VectorLog, -kInf, kNan},
                {VectorLog, kNan, kNan},
                {VectorLogOfComplement, 0, 0},
                {VectorLogOfComplement, 1, -kInf},
                {VectorLogOfComplement, 2, kNan},
                {VectorLogOfComplement, kNan, kNan},
                {VectorLogit, 0, -kInf},
                {VectorLogit, 0.5, 0},
                {VectorLogit, 1, kInf},
                {VectorLogit, -0.5, kNan},
                {VectorLogit, 1.5, kNan},
                {VectorLogit, kNan, kNan}};
  for (const auto& point : points) {
    const double value = point.function(point.x);
    if (std::isnan(point.value)) {
      EXPECT_TRUE(std::isnan(value)) << point.x << " gives " << value;
    } else {
      EXPECT_EQ(value, point.value) << point.x;
    }
  }
}

TEST(MathTest, PowersAreRoundedOnce) {
  const float exponents[] = {-37.5f, -2.0f, -0.3f, 0.0f, 1e-3f, 0.5f, 1.0f, 1.7f, 3.0f, 90.0f};
  for (const float exponent : exponents) {
    double worst = 0;
    ForSampledFloats([&](float x) {
      if (!IsPowerOfPositive(x, exponent)) return;
      const double exact = std::pow(static_cast<double>(x), static_cast<double>(exponent));
      const float value = PowerOfPositive(x, exponent);
      if (static_cast<float>(exact) == kInfinity) {
        ASSERT_EQ(value, kInfinity) << x;
      } else {
        worst = std::max(worst, UlpError(value, exact));
      }
    });
    EXPECT_LE(worst, 0.501) << exponent;
  }
  for (const float base : {-1.0f, 0.0f, -0.0f, kInfinity, kNotANumber}) {
    EXPECT_FALSE(IsPowerOfPositive(base, 2.0f)) << base;
  }
  EXPECT_FALSE(IsPowerOfPositive(2.0f, kInfinity));
  EXPECT_FALSE(IsPowerOfPositive(2.0f, kNotANumber));
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
