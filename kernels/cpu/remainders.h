// Remainders and rounded quotients of float32, without branches, where float64 has the whole
// quotient exactly.
#pragma once

#include <cmath>
#include <limits>

namespace opserve::kernels {

// Whether the quotient is below 2^28 and b neither 0 nor infinite. A quotient of floats is then not
// nearer to a whole number than float64 can tell, unless it is one; and a - n b is exact.
[[gnu::always_inline]] inline bool HasShortQuotient(float a, float b) {
  return std::fabs(a) < std::fabs(b) * 0x1p28f && std::fabs(b) <= std::numeric_limits<float>::max();
}

// The remainder with a's sign.
[[gnu::always_inline]] inline float ShortTruncatedRemainder(float a, float b) {
  const double dividend = a;
  const double divisor = b;
  const double rest = dividend - std::trunc(dividend / divisor) * divisor;
  return std::copysign(static_cast<float>(rest), a);
}

// The remainder with b's sign.
[[gnu::always_inline]] inline float ShortFlooredRemainder(float a, float b) {
  const float rest = ShortTruncatedRemainder(a, b);
  return rest != 0.0f && (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;
}

// The greatest whole number not above a / b.
[[gnu::always_inline]] inline float ShortFlooredQuotient(float a, float b) {
  return static_cast<float>(std::floor(static_cast<double>(a) / static_cast<double>(b)));
}

// The forms of guarded.h: of two tensors, of a tensor and a parameter, and of a parameter and a
// tensor.
template <float (*kOf)(float, float)>
struct ShortQuotient {
  static bool Takes(float a, float b, const float*) { return HasShortQuotient(a, b); }
  static float Of(float a, float b, const float*) { return kOf(a, b); }
  static bool Takes(float a, const float* p) { return HasShortQuotient(a, p[0]); }
  static float Of(float a, const float* p) { return kOf(a, p[0]); }
};
template <float (*kOf)(float, float)>
struct ShortQuotientOfParameter {
  static bool Takes(float b, const float* p) { return HasShortQuotient(p[0], b); }
  static float Of(float b, const float* p) { return kOf(p[0], b); }
};

}  // namespace opserve::kernels
