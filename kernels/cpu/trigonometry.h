// Circular functions and their inverses in float32 without branches, so that loops over them become
// vectors; the inverses' overloads for double are the standard library's. Errors are in units of
// the last place (ulp) that float32 has at the true value; math_test.cc holds them to it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/logarithms.h"
#include "kernels/cpu/simd.h"

namespace opserve::kernels {

// Angles for which Quadrant is exact enough: a product of 32 bits and a whole number is exact.
inline constexpr float kMaxAngle = 0x1p20f;

// x = n pi/2 + r with |r| <= pi/4, for |x| < kMaxAngle. As float64, which leaves r's rounding only.
struct Quadrant {
  [[gnu::always_inline]] explicit Quadrant(float x) {
    constexpr double kHalfPiHigh = 0x1.921fb54400000p+0;  // 32 bits
    constexpr double kHalfPiLow = 0x1.0b4611a626331p-34;
    constexpr double kOverHalfPi = 0x1.45f306dc9c883p-1;
    constexpr double kRound = 0x1.8p52;
    const double angle = x;
    const double whole = (angle * kOverHalfPi + kRound) - kRound;
    r = static_cast<float>((angle - whole * kHalfPiHigh) - whole * kHalfPiLow);
    n = std::bit_cast<uint32_t>(static_cast<float>(whole) + 0x1.8p23f);
  }
  uint32_t n;  // modulo 4, in the low bits
  float r;
};

// The sine of x + (quarter turns) pi/2 for |x| < kMaxAngle, within 1 ulp and a half.
[[gnu::always_inline]] inline float SineOf(float x, uint32_t quarter_turns) {
  const Quadrant quadrant(x);
  const uint32_t n = quadrant.n + quarter_turns;
  const float r = quadrant.r;
  const float square = r * r;
  // Polynomials fitted for the least error relative to the results (1.6e-10 and 1.1e-10).
  const float s = (2.837395186361391e-6f * square - 1.9853505364153534e-4f) * (square * square) +
                  (8.333380334079266e-3f * square - 1.666666716337204e-1f);
  const float c =
      (2.443066841806285e-5f * square - 1.38873013202101e-3f) * square + 4.166664555668831e-2f;
  const float sine = std::copysign(r * square * s + r, r);
  const float cosine = square * square * c + (1.0f - 0.5f * square);
  const float result = (n & 1) != 0 ? cosine : sine;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(result) ^ ((n & 2) << 30));
}

// The tangent for |x| < kMaxAngle, within 2 ulp.
[[gnu::always_inline]] inline float TangentOf(float x) {
  const Quadrant quadrant(x);
  const float r = quadrant.r;
  const float square = r * r;
  const float fourth = square * square;
  // tan r = r + r^3 t(r^2), t fitted for the least relative error (1.3e-10).
  const float t01 = 1.3333432376384735e-1f * square + 3.333333134651184e-1f;
  const float t23 = 2.200697362422943e-2f * square + 5.395142361521721e-2f;
  const float t45 = 5.16082625836134e-3f * square + 8.248687721788883e-3f;
  const float t67 = 2.1161644253879786e-3f * square - 7.724707247689366e-4f;
  const float t = (t67 * fourth + t45) * (fourth * fourth) + (t23 * fourth + t01);
  const float tangent = std::copysign(r * square * t + r, r);
  return (quadrant.n & 1) != 0 ? -1.0f / tangent : tangent;
}

inline constexpr float kHalfPiHigh = 1.57079637f;
inline constexpr float kHalfPiLow = -4.37113883e-8f;

// asin(z) - z for 0 <= z <= 1/2 with z^2 = square, fitted for the least error relative to asin(z)
// (2.9e-10).
[[gnu::always_inline]] inline float AsinTail(float z, float square) {
  const float fourth = square * square;
  const float p01 = 7.500521093606949e-2f * square + 1.6666659712791443e-1f;
  const float p23 = 3.183605521917343e-2f * square + 4.451363533735275e-2f;
  const float p45 = 3.767312690615654e-2f * square + 1.432918943464756e-2f;
  return ((p45 * fourth + p23) * fourth + p01) * square * z;
}

// Within 2 ulp; NaN beyond 1.
[[gnu::always_inline]] inline float Asin(float x) {
  // asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)) for a > 1/2.
  const float a = std::fabs(x);
  const bool is_large = a > 0.5f;
  const float square = is_large ? 0.5f - 0.5f * a : a * a;
  const float z = is_large ? std::sqrt(square) : a;
  const float asin = z + AsinTail(z, square);
  const float result = is_large ? (kHalfPiHigh - 2.0f * asin) + kHalfPiLow : asin;
  return std::copysign(result, x);
}
inline double Asin(double x) { return std::asin(x); }

[[gnu::always_inline]] inline float Acos(float x) {
  const float a = std::fabs(x);
  const bool is_large = a > 0.5f;
  const float square = is_large ? 0.5f - 0.5f * a : a * a;
  const float z = is_large ? std::sqrt(square) : a;
  const float tail = AsinTail(z, square);
  const float asin = z + tail;
  const float signed_asin = std::copysign(asin, x);
  const float middle = kHalfPiHigh - (signed_asin - kHalfPiLow);
  const float near_minus_one = 2.0f * kHalfPiHigh - 2.0f * (asin - kHalfPiLow);
  const float outer = x < 0.0f ? near_minus_one : 2.0f * asin;
  return is_large ? outer : middle;
}
inline double Acos(double x) { return std::acos(x); }

// atan(z) for 0 <= z <= 1 by a polynomial fitted for the least relative error (4.2e-10).
[[gnu::always_inline]] inline float AtanOfFraction(float z) {
  const float square = z * z;
  const float fourth = square * square;
  const float eighth = fourth * fourth;
  const float p01 = 1.99997216463089e-1f * square - 3.33333283662796e-1f;
  const float p23 = 1.106225848197937e-1f * square - 1.4280468225479126e-1f;
  const float p45 = 6.774560362100601e-2f * square - 8.825848251581192e-2f;
  const float p67 = 2.2923668846488e-2f * square - 4.514696076512337e-2f;
  const float p89 = 1.1492347111925483e-3f * square - 7.496735546737909e-3f;
  const float p = (p89 * eighth + (p67 * fourth + p45)) * eighth + (p23 * fourth + p01);
  return p * square * z + z;
}

// Within 2 ulp.
[[gnu::always_inline]] inline float Atan(float x) {
  const float a = std::fabs(x);
  const bool is_large = a > 1.0f;
  const float atan = AtanOfFraction((is_large ? 1.0f : a) / (is_large ? a : 1.0f));
  return std::copysign(is_large ? (kHalfPiHigh - atan) + kHalfPiLow : atan, x);
}
inline double Atan(double x) { return std::atan(x); }

// The angle of the point (x, y), within 2 ulp; with the standard's results for zeros and
// infinities.
[[gnu::always_inline]] inline float Atan2(float y, float x) {
  const float height = std::fabs(y);
  const float width = std::fabs(x);
  const bool is_steep = height > width;
  const float less = is_steep ? width : height;
  const float more = is_steep ? height : width;
  const float quotient = less / more;
  const float of_equals = more == 0.0f ? 0.0f : 1.0f;  // also of infinities
  const float atan = AtanOfFraction(less == more ? of_equals : quotient);
  const float right = is_steep ? (kHalfPiHigh - atan) + kHalfPiLow : atan;
  const float left = (2.0f * kHalfPiHigh - right) + 2.0f * kHalfPiLow;
  const bool is_left = std::bit_cast<uint32_t>(x) >> 31 != 0;
  return std::copysign(is_left ? left : right, y);
}
inline double Atan2(double y, double x) { return std::atan2(y, x); }

// Within 2 ulp; NaN beyond 1.
[[gnu::always_inline]] inline float Atanh(float x) {
  const float a = std::fabs(x);
  return std::copysign(0.5f * (Log1p(a) - Log1p(-a)), x);
}
inline double Atanh(double x) { return std::atanh(x); }

// The forms of guarded.h.
struct FastSine {
  static bool Takes(float x, const float*) { return std::fabs(x) < kMaxAngle; }
  static float Of(float x, const float*) { return SineOf(x, 0); }
};
struct FastCosine {
  static bool Takes(float x, const float*) { return std::fabs(x) < kMaxAngle; }
  static float Of(float x, const float*) { return SineOf(x, 1); }
};
struct FastTangent {
  static bool Takes(float x, const float*) { return std::fabs(x) < kMaxAngle; }
  static float Of(float x, const float*) { return TangentOf(x); }
};

}  // namespace opserve::kernels
