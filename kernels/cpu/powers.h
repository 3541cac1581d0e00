// Powers of float32, without branches, where the base is positive.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/cpu/float64.h"

namespace opserve::kernels {

// a^b for positive finite a and finite b, rounded once but where float64 cannot tell to which side.
[[gnu::always_inline]] inline float PowerOfPositive(float a, float b) {
  return static_cast<float>(VectorExp(static_cast<double>(b) * VectorLogOfQuotient(a, 1.0)));
}
[[gnu::always_inline]] inline bool IsPowerOfPositive(float a, float b) {
  constexpr float kMost = std::numeric_limits<float>::max();
  // `&`: GCC 12 leaves loops as they are in which `&&` asks for a number that never changes.
  return ((a > 0.0f) & (a <= kMost) & (std::fabs(b) <= kMost)) != 0;
}

// The forms of guarded.h: of two tensors, of a tensor and a parameter, and of a parameter and a
// tensor.
struct FastPower {
  static bool Takes(float a, float b, const float*) { return IsPowerOfPositive(a, b); }
  static float Of(float a, float b, const float*) { return PowerOfPositive(a, b); }
  static bool Takes(float a, const float* p) { return IsPowerOfPositive(a, p[0]); }
  static float Of(float a, const float* p) { return PowerOfPositive(a, p[0]); }
};
struct FastPowerOfParameter {
  static bool Takes(float b, const float* p) { return IsPowerOfPositive(p[0], b); }
  static float Of(float b, const float* p) { return PowerOfPositive(p[0], b); }
};

}  // namespace opserve::kernels
