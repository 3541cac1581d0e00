// Conversions against their definition, in the library (whichever variant is loaded) and in the
// scalar functions of the header.
#include "kernels/cpu/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "tests/seed.h"
#include "tests/unit/kernels/reference.h"

namespace opserve::kernels {
namespace {

// The value of a half by the definition of binary16.
double HalfValue(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

double Bfloat16Value(uint16_t bits) {
  const int exponent = bits >> 7 & 0xff;
  const int fraction = bits & 0x7f;
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == 255) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -133);
  return sign * std::ldexp(128 + fraction, exponent - 134);
}

// What a float rounds to: a search among all values of the type. `infinity` has the bits of +inf,
// and stands for the value that would follow the largest finite one.
uint16_t NearestBits(float value, double (*value_of)(uint16_t), uint16_t infinity) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(static_cast<double>(value));
  const auto position = [&](uint16_t bits) {
    if (bits < infinity) return value_of(bits);
    return 2 * value_of(infinity - 1) - value_of(infinity - 2);
  };
  if (magnitude >= position(infinity)) return sign | infinity;
  uint16_t low = 0;
  uint16_t high = infinity;
  while (high - low > 1) {
    const uint16_t middle = static_cast<uint16_t>((low + high) / 2);
    (position(middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - position(low);
  const double above = position(high) - magnitude;
  const bool takes_high = above < below || (above == below && low % 2 != 0);
  return sign | (takes_high ? high : low);
}

// Passes values through L1LossBackward as gradients of sign 1, which converts them.
template <typename From, typename To>
std::vector<To> Convert(const std::vector<From>& values, Dtype from, Dtype to) {
  const auto count = static_cast<int64_t>(values.size());
  const Layout grad = ContiguousLayout(from, {count});
  const Layout scalar = ContiguousLayout(Dtype::kFloat, {});
  const Layout out = ContiguousLayout(to, {count});
  std::vector<To> converted(count);
  const float one = 1;
  const float zero = 0;
  const void* inputs[] = {values.data(), &one, &zero};
  SerialTaskRunner runner;
  void* const outputs[] = {converted.data()};
  MakeKernel("aclnnL1LossBackward",
             {.inputs = {{grad}, {scalar}, {scalar}}, .outputs = {{out}}, .attributes = {kSum}})
      ->Run(inputs, outputs, nullptr, runner);
  return converted;
}

std::vector<uint16_t> AllBits() {
  std::vector<uint16_t> all(65536);
  for (int i = 0; i < 65536; ++i) all[i] = static_cast<uint16_t>(i);
  return all;
}

bool IsSameOrNan(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

TEST(ConvertTest, EveryHalfWidensExactly) {
  const std::vector<float> widened =
      Convert<uint16_t, float>(AllBits(), Dtype::kFloat16, Dtype::kFloat);
  for (int i = 0; i < 65536; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    ASSERT_TRUE(IsSameOrNan(widened[i], HalfValue(bits))) << i;
    ASSERT_TRUE(IsSameOrNan(Widened(Half{bits}), HalfValue(bits))) << i;
  }
}

TEST(ConvertTest, EveryBfloat16WidensExactly) {
  const std::vector<float> widened =
      Convert<uint16_t, float>(AllBits(), Dtype::kBfloat16, Dtype::kFloat);
  for (int i = 0; i < 65536; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    ASSERT_TRUE(IsSameOrNan(widened[i], Bfloat16Value(bits))) << i;
    ASSERT_TRUE(IsSameOrNan(Widened(Bfloat16{bits}), Bfloat16Value(bits))) << i;
  }
}

struct NarrowType {
  const char* name;
  Dtype dtype;
  double (*value_of)(uint16_t);
  uint16_t infinity;
  uint16_t (*narrowed)(float);
};

const NarrowType kNarrowTypes[] = {
    {"FLOAT16", Dtype::kFloat16, HalfValue, 0x7c00,
     [](float value) { return Narrowed<Half>(value).bits; }},
    {"BF16", Dtype::kBfloat16, Bfloat16Value, 0x7f80,
     [](float value) { return Narrowed<Bfloat16>(value).bits; }},
};

// All values of the type, the ties between neighbours, and the floats next to all of these.
std::vector<float> FloatsNearTies(const NarrowType& type) {
  std::vector<float> floats;
  for (uint16_t bits = 0; bits < type.infinity; ++bits) {
    const double value = type.value_of(bits);
    const double step = bits + 1 < type.infinity ? type.value_of(bits + 1) - value
                                                 : value - type.value_of(bits - 1);
    for (double exact : {value, value + step / 2, value + step / 4}) {
      const float nearest = static_cast<float>(exact);
      for (float near :
           {std::nextafter(nearest, 0.0f), nearest, std::nextafter(nearest, INFINITY)}) {
        floats.push_back(near);
        floats.push_back(-near);
      }
    }
  }
  return floats;
}

std::vector<float> RandomFloats(uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> floats(200'000);
  for (float& value : floats) {
    do {
      value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    } while (std::isnan(value));
  }
  return floats;
}

TEST(ConvertTest, FloatsRoundToNearestEven) {
  for (const NarrowType& type : kNarrowTypes) {
    std::vector<float> floats = FloatsNearTies(type);
    const std::vector<float> random = RandomFloats(TestSeed(20));
    floats.insert(floats.end(), random.begin(), random.end());
    const std::vector<uint16_t> narrowed =
        Convert<float, uint16_t>(floats, Dtype::kFloat, type.dtype);
    for (size_t i = 0; i < floats.size(); ++i) {
      const uint16_t nearest = NearestBits(floats[i], type.value_of, type.infinity);
      ASSERT_EQ(narrowed[i], nearest) << type.name << " " << floats[i];
      ASSERT_EQ(type.narrowed(floats[i]), nearest) << type.name << " " << floats[i];
    }
  }
}

TEST(ConvertTest, EveryNanStaysNan) {
  std::vector<float> nans;
  for (uint32_t bit = 0; bit < 23; ++bit) {
    nans.push_back(std::bit_cast<float>(0x7f800000u | 1u << bit));
    nans.push_back(std::bit_cast<float>(0xff800000u | 1u << bit));
  }
  nans.push_back(std::bit_cast<float>(0x7fffffffu));
  for (const NarrowType& type : kNarrowTypes) {
    const std::vector<uint16_t> narrowed =
        Convert<float, uint16_t>(nans, Dtype::kFloat, type.dtype);
    for (size_t i = 0; i < nans.size(); ++i) {
      EXPECT_TRUE(std::isnan(type.value_of(narrowed[i]))) << type.name << " " << i;
      EXPECT_TRUE(std::isnan(type.value_of(type.narrowed(nans[i])))) << type.name << " " << i;
    }
  }
}

}  // namespace
}  // namespace opserve::kernels
