// The error function, the normal distribution and what activations make of it, in float32 without
// branches, so that loops over them become vectors; their overloads for double are made of the
// standard library's. Errors are in units of the last place (ulp) that float32 has at the true
// value; math_test.cc holds them to it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/exact_product.h"
#include "kernels/cpu/exponentials.h"
#include "kernels/cpu/simd.h"

namespace opserve::kernels {

// The error function, within 2 ulp.
[[gnu::always_inline]] inline float Erf(float x) {
  // erf(x) = 1 - e^-z for z = x q(x), q fitted for the least relative error of the result (4.2e-9).
  // The first coefficient, 2 / sqrt(pi), has a rest, as it decides near 0.
  const float y = AtMost(std::fabs(x), 3.95f);  // from 3.92 on the result rounds to 1
  const float square = y * y;
  const float q12 = 1.0277687758207321e-1f * y + 6.36619508266449e-1f;
  const float q34 = -1.654821535339579e-4f * y - 1.9149983301758766e-2f;
  const float q56 = -6.351421470753849e-4f * y + 1.6716347308829427e-3f;
  const float q78 = -9.317825060861651e-6f * y + 1.1823616659967229e-4f;
  const float q = (q78 * square + q56) * (square * square) + (q34 * square + q12);
  const float rest = q * square - 5.8635382771399236e-8f * y;
  const float z = 1.128379225730896f * y + rest;
  return std::copysign(-Expm1(-z), x);
}
inline double Erf(double x) { return std::erf(x); }

// -x^2 as the sum of a number with its upper bits, which is exact, and the rest.
struct NegativeSquare {
  [[gnu::always_inline]] explicit NegativeSquare(float x) {
    const float upper = std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0xfffff000u);
    high = -upper * upper;
    low = -(x - upper) * (x + upper);
  }
  float high;
  float low;
};

// 1 - erf(x), within 2 ulp also where it is small.
[[gnu::always_inline]] inline float Erfc(float x) {
  // e^-x^2 w e^s(w) with w = 1 / (1 + x / 2), s fitted for the least error (7.2e-9).
  const float y = AtMost(std::fabs(x), 10.2f);  // beyond the result is 0
  const float sum = 0.5f * y + 1.0f;
  const float w = 1.0f / sum;
  // The roundings of the sum and of w, whose logarithms they are.
  const float sum_rest = 0.5f * y - (sum - 1.0f);
  const float w_rest = OneMinusProduct(sum, w) - sum_rest * w;
  const float t = w_rest * w + (w - 0.625f);
  const float square = t * t;
  const float s01 = 1.3741672039031982f * t - 1.264367252588272e-1f;
  const float s23 = -4.081588685512543e-1f * t + 3.961561992764473e-2f;
  const float s45 = 2.7383169531822205e-1f * t + 2.4857748299837112e-2f;
  const float s67 = -1.9073332846164703e-1f * t - 1.1638890951871872e-1f;
  const float s89 = 8.826344460248947e-2f * t + 1.8429292738437653e-1f;
  const float s = (((-1.3819368183612823e-1f * square + s89) * square + s67) * square + s45) *
                      (square * square) +
                  (s23 * square + s01);
  const NegativeSquare exponent(y);
  const SplitPower power = SplitExp(exponent.high, 0.375f, s, exponent.low + w_rest);
  const bool is_scaled = exponent.high < -80.0f;
  const float scaled = (w * power.fraction + w) * (is_scaled ? power.Power(64) : power.Power());
  const float tail = scaled * (is_scaled ? 0x1p-64f : 1.0f);
  return x < 0.0f ? 2.0f - tail : tail;
}
inline double Erfc(double x) { return std::erfc(x); }

// x times the distribution function of the normal distribution, within 2 ulp.
[[gnu::always_inline]] inline float Gelu(float x) {
  // x > 0: x - x Q(x), else x Q(-x), where Q(y) = e^(-y^2 / 2) w / 2 e^s(w) with w = 1 / (1 + y/2),
  // s fitted for the least error (1.1e-8).
  const float y = AtMost(std::fabs(x), 15.0f);  // beyond Q is 0
  const float sum = 0.5f * y + 1.0f;
  const float w = 1.0f / sum;
  const float sum_rest = 0.5f * y - (sum - 1.0f);
  const float w_rest = OneMinusProduct(sum, w) - sum_rest * w;
  const float t = w_rest * w + (w - 0.5625f);
  const float square = t * t;
  const float s01 = 9.433803558349609e-1f * t + 1.6342440247535706e-1f;
  const float s23 = -2.030099332332611e-1f * t - 3.603740930557251e-1f;
  const float s45 = -8.044280856847763e-2f * t + 3.2663533091545105e-1f;
  const float s67 = 3.1704652309417725e-1f * t - 2.3560157418251038e-1f;
  const float s89 = -3.490084409713745e-1f * t - 2.7336720377206802e-2f;
  const float sab = 1.3949981331825256e-1f * t + 2.0519675314426422e-1f;
  const float s = (((sab * square + s89) * square + s67) * square + s45) * (square * square) +
                  (s23 * square + s01);
  const NegativeSquare exponent(y);
  const SplitPower power = SplitExp(0.5f * exponent.high, 0.5f, s, 0.5f * exponent.low + w_rest);
  const bool is_scaled = exponent.high < -160.0f;
  const float scale = is_scaled ? power.Power(63) : power.Power(-1);
  const float product = y * w;
  const float product_rest = ProductRest(y, w, product);
  const float tail =
      (product * power.fraction + product_rest + product) * scale * (is_scaled ? 0x1p-64f : 1.0f);
  return x >= 0.0f ? x - tail : -tail;
}
inline double Gelu(double x) { return x * (0.5 * std::erfc(x * -0.70710678118654752440)); }

// The fast form (guarded.h) of Gelu, within 2 ulp: without a division, for which the range must be
// limited.
struct FastGelu {
  static constexpr float kEnd = 7.0f;

  static bool Takes(float x, const float* /*parameters*/) { return x >= -kEnd; }
  // As Gelu, with Q(y) = e^(-y^2 / 2 - a y + y s(y - 4)) / 2, s fitted for the least error of the
  // exponent (8.3e-9); a has few digits.
  static float Of(float x, const float* /*parameters*/) {
    constexpr float kLog2E = 1.44269504f;
    constexpr float kLn2High = 0.693359375f;
    constexpr float kLn2Low = -2.12194440e-4f;
    constexpr float kRound = 0x1.8p23f;
    constexpr float kSlope = 0.359375f;
    const float y = AtMost(std::fabs(x), kEnd);  // beyond Q counts for nothing where x > 0
    const float t = y - 4.0f;
    const float square = t * t;
    const float fourth = square * square;
    const float s01 = 4.77828607e-2f * t - 5.73635772e-2f;
    const float s23 = 7.83878088e-4f * t - 6.1115995e-3f;
    const float s45 = 1.12182533e-5f * t - 9.69566754e-5f;
    const float s67 = 9.40720142e-8f * t - 1.15540399e-6f;
    const float s89 = -2.56800498e-10f * t - 4.66653649e-9f;
    const float sab = -8.02820796e-11f * t + 2.81822038e-10f;
    const float s47 = s67 * square + s45;
    const float s8c = (7.6033381e-12f * square + sab) * square + s89;
    const float s = (s8c * fourth + s47) * fourth + (s23 * square + s01);

    // The exponent is n ln2 + r. Half the square of y's upper bits is exact, as is n ln2 taken
    // away.
    const float upper = std::bit_cast<float>(std::bit_cast<uint32_t>(y) & 0xfffff000u);
    const float half = -0.5f * upper * upper;
    const float half_rest = 0.5f * ProductRest(y, y, upper * upper);
    const float shifted = ((s - kSlope) * y + half) * kLog2E + kRound;
    const float n = shifted - kRound;
    const float low = s * y - (n * kLn2Low + half_rest);
    const float r = PlusProduct(half - n * kLn2High, -kSlope, y) + low;

    // e^r - 1 as in Exp.
    const float r_square = r * r;
    const float q01 = 1.666651964187622e-1f * r + 4.999999403953552e-1f;
    const float q23 =
        (1.3814320554956794e-3f * r + 8.36885068565607e-3f) * r + 4.1668400168418884e-2f;
    const SplitPower power{std::bit_cast<uint32_t>(shifted), (q23 * r_square + q01) * r_square + r};
    const float product = y * power.Power(-1);
    const float tail = product * power.fraction + product;
    // The sign is that of x, also where the tail is too small for a float.
    return std::copysign(AtLeast(x, 0.0f) - tail, x);
  }
};

// gradient * d(Gelu(x))/dx: within 2 ulp and 2 roundings of the derivative's terms, the
// distribution function and x times the density.
[[gnu::always_inline]] inline float GeluGradient(float gradient, float x) {
  // x < 0: the derivative is e^(-x^2 / 2) (R(-x) - -x / sqrt(2 pi)), else 1 - e^(-x^2 / 2) (R(x) -
  // x / sqrt(2 pi)), where R(y) = w r(w) with w = 1 / (1 + y / 4), r fitted for the least relative
  // error (1e-8).
  constexpr float kOverRoot = 0.398942280401432678f;
  const float y = AtMost(std::fabs(x), 15.0f);  // beyond the power is 0
  const float sum = 0.25f * y + 1.0f;
  const float w = 1.0f / sum;
  const float sum_rest = 0.25f * y - (sum - 1.0f);
  const float w_rest =
      (OneMinusProduct(sum, w) - sum_rest * w) * w;  // 1 / (1 + y / 4) = w + w_rest
  const float t = w_rest + (w - 0.609375f);
  const float square = t * t;
  const float r12 = 5.275364518165588e-1f * t + 4.033244252204895e-1f;
  const float r34 = 2.6230600476264954e-1f * t + 4.842454493045807e-1f;
  const float r56 = -8.900750428438187e-2f * t + 1.18519626557827e-2f;
  const float r78 = 2.8243333101272583e-2f * t - 3.298835828900337e-2f;
  const float r_rest = ((1.712079532444477e-2f * square + r78) * square + r56) * (square * square) +
                       (r34 * square + r12);
  const float r = r_rest * t + 2.2722043097019196e-1f;
  const float density = kOverRoot * y;
  const float product = r * w;
  const float rests =
      (r * w_rest + ProductRest(r, w, product)) - ProductRest(kOverRoot, y, density);
  const float difference = product - (density - rests);
  const NegativeSquare exponent(y);
  const SplitPower power = SplitExp(0.5f * exponent.high, 0.0f, -0.0f, 0.5f * exponent.low);
  const bool is_scaled = x < -12.0f;
  const float tail =
      (difference * power.fraction + difference) * (y > 12.0f ? power.Power(64) : power.Power());
  const float factor = x < 0.0f ? gradient : -gradient;
  const float summand = x < 0.0f ? -0.0f : gradient;
  return (factor * tail + summand) * (is_scaled ? 0x1p-64f : 1.0f);
}
inline double GeluGradient(double gradient, double x) {
  const double below = 0.5 * std::erfc(x * -0.70710678118654752440);
  return gradient * (below + x * (std::exp(-0.5 * x * x) * 0.39894228040143267794));
}

}  // namespace opserve::kernels
