// exp and log in float32, without branches. V is float or FloatVector. Errors are in units of the
// last place (ulp) that float32 has at the true value.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/simd.h"

namespace opserve::kernels {

// e^x within 1 ulp. -inf gives exactly 0, +inf and x > ln(FLT_MAX) give inf, NaN gives NaN;
// results below FLT_MIN are rounded to subnormals and, from -104 on, to 0.
template <typename V>
[[gnu::always_inline]] inline V Exp(V x) {
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;  // ten bits: its product with n is exact
  constexpr float kLn2Low = -2.12194440e-4f;
  // Adding it leaves the nearest integer, and twice the bias of exponents, in the low bits.
  constexpr float kRound = 0x1.8p23f + 254.0f;

  // Beyond these the result is inf or 0 anyway. Written so that a NaN passes through.
  const V y = AtLeast(AtMost(x, 89.0f), -104.0f);

  // x = n ln2 + r with |r| <= ln2 / 2.
  const V shifted = y * kLog2E + kRound;
  const V n = shifted - kRound;
  const V r = (y - n * kLn2High) - n * kLn2Low;

  // e^r = 1 + r + r^2 q(r), q fitted for the least relative error (3e-9). Halves of the polynomial
  // are independent of each other: waiting for products is what takes the time.
  const V square = r * r;
  const V low = 1.666651964187622e-1f * r + 4.999999403953552e-1f;
  const V high = (1.3814320554956794e-3f * r + 8.36885068565607e-3f) * r + 4.1668400168418884e-2f;
  const V q = high * square + low;
  const V p = q * square + r + 1.0f;

  // Times 2^n in two steps: each factor is a normal number for every n in [-151, 129], and only the
  // second product can round, once. What else is in the bits of kRound the shifts by 23 push out.
  const auto biased = std::bit_cast<Unsigned<V>>(shifted);
  const Unsigned<V> half = biased >> 1;
  return p * std::bit_cast<V>(half << 23) * std::bit_cast<V>((biased - half) << 23);
}

inline double Exp(double x) { return std::exp(x); }

// ln(x) within 1 ulp for x > 0, also for subnormals. inf gives inf; 0, negative numbers and NaN
// give NaN.
template <typename V>
[[gnu::always_inline]] inline V Log(V x) {
  constexpr float kLn2High = 0.693359375f;
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr uint32_t kSqrtHalf = 0x3f3504f3;

  // Subnormals are scaled into the normal range first; their exponents become negative.
  // (Unsigned: of what is not positive nothing but an overflow comes, and the result is NaN.)
  const auto as_is = std::bit_cast<Unsigned<V>>(x);
  const auto scaled = std::bit_cast<Unsigned<V>>(x * 0x1p23f) - (23u << 23);
  const Unsigned<V> bits = x < std::numeric_limits<float>::min() ? scaled : as_is;

  // x = 2^k m with m in [sqrt(1/2), sqrt(2)).
  const auto biased = std::bit_cast<Signed<V>>(bits - kSqrtHalf);
  const V k = ToFloat(biased >> 23);
  const V f = std::bit_cast<V>(((bits - kSqrtHalf) & 0x7fffffu) + kSqrtHalf) - 1.0f;

  // ln(1 + f) = f - f^2/2 + f^3 p(f), p fitted for the least relative error (6e-9). Pairs of terms
  // are independent of each other: waiting for products is what takes the time.
  const V square = f * f;
  const V p01 = -2.50008225440979e-1f * f + 3.333333134651184e-1f;
  const V p23 = -1.6623298823833466e-1f * f + 2.0001234114170074e-1f;
  const V p45 = -1.316058337688446e-1f * f + 1.4201553165912628e-1f;
  const V p67 = -7.635651528835297e-2f * f + 1.276332587003708e-1f;
  const V p = (p67 * square + p45) * (square * square) + (p23 * square + p01);
  const V tail = (p * f - 0.5f) * square + k * kLn2Low;
  const V finite = k * kLn2High + (f + tail);

  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const V positive = x == kInfinity ? x : finite;
  return x > 0.0f ? positive : std::numeric_limits<float>::quiet_NaN();
}

}  // namespace opserve::kernels
