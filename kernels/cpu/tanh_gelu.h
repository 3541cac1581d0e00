// The approximation of gelu by tanh, x sigmoid(z) with z = c (x + 0.044715 x^3), and its
// derivative, without branches, so that loops over them become vectors. Of float32 the arguments of
// exponentials are float64, as their rounding would be multiplied by z. Errors are in units of the
// last place (ulp) that float32 has at the true value; math_test.cc holds them to it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/exponentials.h"
#include "kernels/cpu/sigmoid.h"
#include "kernels/cpu/simd.h"

namespace opserve::kernels {

// z, twice the argument of tanh, and x dz/dx.
struct TanhGeluPower {
  static constexpr double kLinear = 1.59576912160573071176;  // sqrt(8 / pi)
  static constexpr double kCubic = 0.07135481627260024876;   // times 0.044715

  [[gnu::always_inline]] explicit TanhGeluPower(double x)
      : z(x * (kLinear + kCubic * x * x)), slope(x * (kLinear + 3 * kCubic * x * x)) {}
  // Beyond 15 the sigmoid function is 0 or 1 as float32.
  [[gnu::always_inline]] explicit TanhGeluPower(float x)
      : TanhGeluPower(static_cast<double>(AtLeast(AtMost(x, 15.0f), -15.0f))) {}

  // z as the sum of two numbers.
  [[gnu::always_inline]] float high() const { return static_cast<float>(z); }
  [[gnu::always_inline]] float low() const { return static_cast<float>(z - high()); }

  double z;
  double slope;
};

// factor TanhGelu(x), within 2 ulp.
template <typename T>
[[gnu::always_inline]] inline T TimesTanhGelu(T factor, T x) {
  const TanhGeluPower power(x);
  if constexpr (std::is_same_v<T, float>) {
    return TimesSilu(factor, x, power.high(), power.low());
  } else {
    return TimesSilu(factor, x, power.z, T{0});
  }
}

// Within 2 ulp.
template <typename T>
[[gnu::always_inline]] inline T TanhGelu(T x) {
  const TanhGeluPower power(x);
  if constexpr (std::is_same_v<T, float>) {
    return TimesSigmoid(x, power.high(), power.low());
  } else {
    return TimesSigmoid(x, power.z);
  }
}

// (gradient + gradient_low) d(TanhGelu(x))/dx, within 1 ulp and a rounding of the derivative's
// terms, sigmoid(z) and x dz/dx sigmoid(z) sigmoid(-z).
[[gnu::always_inline]] inline float TanhGeluGradient(float gradient, float x,
                                                     float gradient_low = 0.0f) {
  const TanhGeluPower power(x);
  const SplitPower split = SplitExp(-power.high(), 0.0f, -0.0f, -power.low());
  const auto n = static_cast<int64_t>(static_cast<int32_t>(split.shifted - 0x4b400000u));
  const double scale = std::bit_cast<double>((n + 1023) << 52);
  const double e = scale + scale * static_cast<double>(split.fraction);
  const double inverse = 1 / (1 + e);
  const double derivative = inverse + power.slope * e * inverse * inverse;
  const double factor = static_cast<double>(gradient) + static_cast<double>(gradient_low);
  return static_cast<float>(factor * derivative);
}
inline double TanhGeluGradient(double gradient, double x, double /*gradient_low*/ = 0) {
  const TanhGeluPower power(x);
  return gradient * (1 / (1 + std::exp(-power.z)) + power.slope * SigmoidSlope(power.z));
}

}  // namespace opserve::kernels
