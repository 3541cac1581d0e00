// Functions made of powers of e, in float32 and without branches, so that loops over them become
// vectors; their overloads for double are the standard library's. Errors are in units of the last
// place (ulp) that float32 has at the true value; math_test.cc holds them to it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/logarithms.h"
#include "kernels/cpu/simd.h"

namespace opserve::kernels {

// 2^n (1 + fraction) with n whole: a power of e before the sum is rounded.
struct SplitPower {
  uint32_t shifted;  // n, in the low bits
  float fraction;    // e^r - 1 for the rest |r| <= ln2 / 2

  // 2^(n + more); n + more in [-126, 127].
  [[gnu::always_inline]] float Power(int more = 0) const {
    return std::bit_cast<float>((shifted << 23) + (static_cast<uint32_t>(127 + more) << 23));
  }
};

// e^(x - offset + more + low), where |x| < 1e5, |more| < 1 and `low` are further digits; NaN gives
// a fraction that is NaN. A constant `offset`, a multiple of 1/8, keeps `more` and its rounding
// small.
[[gnu::always_inline]] inline SplitPower SplitExp(float x, float offset, float more, float low) {
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;  // ten bits: its product with n is exact
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr float kRound = 0x1.8p23f;  // adding it leaves n in the low bits

  const float shifted = ((x - offset) + more) * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = (((x - n * kLn2High) - offset) + more) - (n * kLn2Low - low);

  // e^r - 1 = r + r^2 q(r), q fitted for the least error relative to it (4.4e-10).
  const float square = r * r;
  const float q01 = 1.666666567325592e-1f * r + 0.5f;
  const float q23 = 8.333544246852398e-3f * r + 4.166649281978607e-2f;
  const float q45 = 1.9763388263527304e-4f * r + 1.393234240822494e-3f;
  const float q = (q45 * square + q23) * square + q01;
  return {std::bit_cast<uint32_t>(shifted), q * square + r};
}
[[gnu::always_inline]] inline SplitPower SplitExp(float x) {
  return SplitExp(x, 0.0f, -0.0f, 0.0f);
}

// e^(x + low), within 1 ulp; inf above ln(FLT_MAX), 0 below -104.
[[gnu::always_inline]] inline float ExpOfSum(float x, float low) {
  const SplitPower power = SplitExp(AtLeast(AtMost(x, 89.0f), -104.0f), 0.0f, -0.0f, low);
  // Times 2^n in two steps, as in Exp.
  const uint32_t biased = power.shifted + 254;
  const uint32_t half = biased >> 1;
  return (power.fraction + 1.0f) * std::bit_cast<float>(half << 23) *
         std::bit_cast<float>((biased - half) << 23);
}
inline double ExpOfSum(double x, double /*low*/) { return std::exp(x); }

// e^x - 1, with the sign of x: -1 for -inf, inf above ln(FLT_MAX).
[[gnu::always_inline]] inline float Expm1(float x) {
  const SplitPower power = SplitExp(AtLeast(AtMost(x, 89.0f), -18.0f));
  // In halves, as 2^128 is no float. 2^n - 1 is exact where it matters.
  const float half = power.Power(-1);
  const float result = (half * power.fraction + (half - 0.5f)) * 2.0f;
  return std::fabs(x) < 0x1p-25f ? x : result;
}
inline double Expm1(double x) { return std::expm1(x); }

// 2^x
[[gnu::always_inline]] inline float Exp2(float x) {
  constexpr float kRound = 0x1.8p23f + 254.0f;  // as in Exp
  const float y = AtLeast(AtMost(x, 129.0f), -151.0f);
  const float shifted = y + kRound;
  const float f = y - (shifted - kRound);  // exact, |f| <= 1/2

  // 2^f = 1 + f p(f), p fitted for the least relative error (3e-9).
  const float square = f * f;
  const float p01 = 2.4022647738456726e-1f * f + 6.931471824645996e-1f;
  const float p23 = 9.618503041565418e-3f * f + 5.550359562039375e-2f;
  const float p45 = 1.532782771391794e-4f * f + 1.3390997191891074e-3f;
  const float p = (p45 * square + p23) * square + p01;

  const auto biased = std::bit_cast<uint32_t>(shifted);
  const uint32_t half = biased >> 1;
  return (p * f + 1.0f) * std::bit_cast<float>(half << 23) *
         std::bit_cast<float>((biased - half) << 23);
}
inline double Exp2(double x) { return std::exp2(x); }

// Within 1 ulp and a half. By a polynomial where 1 - 2 / (e^2x + 1) would cancel out.
[[gnu::always_inline]] inline float Tanh(float x) {
  const float magnitude = std::fabs(x);
  // From 9.02 on it is nearer to 1 than to any other float.
  const SplitPower power = SplitExp(AtMost(magnitude, 10.0f) * 2.0f);
  const float s = power.Power();
  const float above = 1.0f - 2.0f / (s * power.fraction + (s + 1.0f));

  // tanh x = x + x^3 t(x^2), t fitted for the least relative error (1.6e-10).
  const float square = magnitude * magnitude;
  const float fourth = square * square;
  const float t01 = 1.3333222270011902e-1f * square - 3.333333134651184e-1f;
  const float t23 = 2.170874923467636e-2f * square - 5.394846200942993e-2f;
  const float t45 = 2.1576357539743185e-3f * square - 8.195086382329464e-3f;
  const float t = (t45 * fourth + t23) * fourth + t01;
  const float below = t * square * magnitude + magnitude;
  return std::copysign(magnitude < 0.625f ? below : above, x);
}
inline double Tanh(double x) { return std::tanh(x); }

// ln(1 + e^(x + low)), without overflow; within 2 ulp.
[[gnu::always_inline]] inline float Softplus(float x, float low = 0.0f) {
  const float power = ExpOfSum(-std::fabs(x), x < 0.0f ? low : -low);
  return Log1pOfFraction(power) + AtLeast(x, 0.0f);
}
inline double Softplus(double x, double /*low*/ = 0) {
  return AtLeast(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
}

}  // namespace opserve::kernels
