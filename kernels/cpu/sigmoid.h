// The sigmoid function and what activations make of it, in float32 without branches, so that loops
// over them become vectors; their overloads for double are made of the standard library's. Errors
// are in units of the last place (ulp) that float32 has at the true value; math_test.cc holds them
// to it.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/cpu/exact_product.h"
#include "kernels/cpu/exponentials.h"
#include "kernels/cpu/math.h"
#include "kernels/cpu/simd.h"

namespace opserve::kernels {

// 1 + e^y, where 2^120 and more are scaled: the number is sum / scale^2. The sum is rounded once,
// as 2^n + (2^n fraction + 1).
struct OnePlusExp {
  // Of y + low with -88 < y < 194; NaN gives a sum that is NaN.
  [[gnu::always_inline]] explicit OnePlusExp(float y, float low = 0.0f) {
    const SplitPower split = SplitExp(y, 0.0f, -0.0f, low);
    const bool is_scaled = y > 83.0f;
    scale = is_scaled ? 0x1p-76f : 1.0f;
    const float one = is_scaled ? 0.0f : 1.0f;
    const float power_of_two = is_scaled ? split.Power(-152) : split.Power();
    const float product = power_of_two * split.fraction;
    power = power_of_two + product;
    sum = power_of_two + (product + one);
  }
  float power;  // e^y, scaled
  float sum;
  float scale;
};

// factor / (1 + e^-(x + low)), within 2 ulp: `factor` times the sigmoid function of x.
[[gnu::always_inline]] inline float TimesSigmoid(float factor, float x, float low = 0.0f) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const OnePlusExp divisor(AtLeast(-x, -20.0f), -low);  // below -18 it is 1
  const float sum = x < -193.0f ? kInfinity : divisor.sum;
  return factor * divisor.scale / sum * divisor.scale;
}
inline double TimesSigmoid(double factor, double x, double /*low*/ = 0) {
  return factor / (1 + std::exp(-x));
}

// The derivative of the sigmoid function, e^-|x| / (1 + e^-|x|)^2, within 3 ulp.
[[gnu::always_inline]] inline float SigmoidSlope(float x) {
  const float power = Exp(-std::fabs(x));
  return power / (power * (power + 2.0f) + 1.0f);
}
inline double SigmoidSlope(double x) {
  const double power = std::exp(-std::fabs(x));
  return power / ((1 + power) * (1 + power));
}

// factor x sigmoid(z + low), within 2 ulp: the roundings of the quotient and of the first product
// are made up for.
[[gnu::always_inline]] inline float TimesSilu(float factor, float x, float z, float low) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const OnePlusExp divisor(AtLeast(-z, -20.0f), -low);  // below -18 it is 1
  const float sum = z < -193.0f ? kInfinity : divisor.sum;
  const float inverse = 1.0f / sum;
  const float scaled = x * divisor.scale;
  const float silu = scaled * inverse;
  const float rest = ProductRest(scaled, inverse, silu) + silu * OneMinusProduct(sum, inverse);
  // Zeros keep their signs, and beyond 87 the result is x or loses digits anyway.
  const float more = silu != 0.0f && std::fabs(z) < 87.0f ? factor * rest : -0.0f;
  return (factor * silu + more) * divisor.scale;
}
inline double TimesSilu(double factor, double x, double z, double /*low*/) {
  return x / (1 + std::exp(-z)) * factor;
}
template <typename T>
[[gnu::always_inline]] inline T TimesSilu(T factor, T x) {
  return TimesSilu(factor, x, x, T{0});
}

// (gradient + gradient_low) d(x sigmoid(beta x))/dx with z = beta x, to which `low` is added:
// within 2 ulp and 2 roundings of the derivative's terms, sigmoid(z) and z sigmoid(z) sigmoid(-z).
[[gnu::always_inline]] inline float SwishGradientAt(float gradient, float z, float low = 0.0f,
                                                    float gradient_low = 0.0f) {
  // Above 87 the second term is 0, below -193 the result.
  const float y = AtLeast(AtMost(z, 87.0f), -193.0f);
  const OnePlusExp divisor(-y, -low);
  const float inverse = 1.0f / divisor.sum;
  // sigmoid(-z), from the smaller of the two.
  const float opposite = y < 0.0f ? 1.0f - inverse * divisor.scale : divisor.power * inverse;
  const float slope = y * opposite * inverse + inverse;
  return (gradient * divisor.scale * slope + gradient_low * divisor.scale * slope) * divisor.scale;
}
inline double SwishGradientAt(double gradient, double z, double /*low*/ = 0,
                              double /*gradient_low*/ = 0) {
  const double sigmoid = 1 / (1 + std::exp(-z));
  return gradient * (sigmoid + z * SigmoidSlope(z));
}

}  // namespace opserve::kernels
