// Functions that formulas are made of, for float, double and, where they say so, int64_t. Integers
// wrap around and never trap.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cpu/math.h"
#include "kernels/cpu/sigmoid.h"
#include "kernels/cpu/simd.h"

namespace opserve::kernels {

template <typename T>
T Plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

template <typename T>
T Minus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  } else {
    return a - b;
  }
}

template <typename T>
T Times(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

template <typename T>
T Negative(T a) {
  if constexpr (std::is_integral_v<T>) {
    return Minus<T>(0, a);
  } else {
    return -a;
  }
}

// The greater, or lesser, of two; NaN where one is. Also of integers.
template <typename T>
T Greater(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a > b ? a : b;
  } else {
    const T greater = GreaterOr(a, b);
    return a != a ? a : greater;
  }
}
template <typename T>
T Lesser(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a < b ? a : b;
  } else {
    const T lesser = LesserOr(a, b);
    return a != a ? a : lesser;
  }
}

// x between two limits that are not NaN, the upper one where they are in the wrong order; NaN where
// x is.
template <typename T>
T Limited(T x, T least, T most) {
  const T above = x < least ? least : x;
  return above > most ? most : above;
}

// a / b cut off towards zero, also of integers, where a division by 0 gives 0.
template <typename T>
T TruncatedQuotient(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;
    return b == -1 ? Negative(a) : a / b;
  } else {
    return std::trunc(a / b);
  }
}

// The remainder of it, with a's sign.
template <typename T>
T TruncatedRemainder(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return b == 0 || b == -1 ? 0 : a % b;
  } else {
    return std::fmod(a, b);
  }
}

// The remainder with b's sign.
template <typename T>
T FlooredRemainder(T a, T b) {
  const T rest = TruncatedRemainder(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// The greatest whole number not above a / b. Of floating numbers it is taken from the remainder,
// as a rounded quotient may be one too large.
template <typename T>
T FlooredQuotient(T a, T b) {
  const T rest = TruncatedRemainder(a, b);
  const bool is_above = rest != 0 && (rest < 0) != (b < 0);
  if constexpr (std::is_integral_v<T>) {
    return TruncatedQuotient(a, b) - (is_above ? 1 : 0);
  } else {
    if (b == 0) return a / b;
    const T quotient = (a - rest) / b - (is_above ? T{1} : T{0});
    if (quotient == 0) return std::copysign(T{0}, a / b);
    const T floor = std::floor(quotient);
    return quotient - floor > T{0.5} ? floor + 1 : floor;
  }
}

// a^b. Of integers also below 0: then 0, but for powers of 1 and -1.
template <typename T>
T Power(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b < 0) {
      if (a == 1) return 1;
      if (a == -1) return b % 2 == 0 ? 1 : -1;
      return 0;
    }
    uint64_t result = 1;
    auto square = static_cast<uint64_t>(a);
    for (auto rest = static_cast<uint64_t>(b); rest != 0; rest >>= 1) {
      if ((rest & 1) != 0) result *= square;
      square *= square;
    }
    return static_cast<T>(result);
  } else {
    return std::pow(a, b);
  }
}

// ln(x), -inf for 0.
inline float Ln(float x) {
  const float logarithm = Log(x);
  return x == 0.0f ? -std::numeric_limits<float>::infinity() : logarithm;
}
inline double Ln(double x) { return std::log(x); }

template <typename T>
inline constexpr T kInfinityOf = std::numeric_limits<T>::infinity();

// 1 / (1 + e^-x)
template <typename T>
[[gnu::always_inline]] inline T SigmoidOf(T x) {
  return TimesSigmoid(T{1}, x);
}

}  // namespace opserve::kernels
