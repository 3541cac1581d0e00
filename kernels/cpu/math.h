// exp and log in float32, without branches, so that loops over them vectorise. Errors are in units
// of the last place (ulp) that float32 has at the true value.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace opserve::kernels {

// e^x within 1 ulp. -inf gives exactly 0, +inf and x > ln(FLT_MAX) give inf, NaN gives NaN;
// results below FLT_MIN are rounded to subnormals and, from -104 on, to 0.
inline float Exp(float x) {
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;  // ten bits: its product with n is exact
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr float kRound = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits

  // Beyond these the result is inf or 0 anyway. Written so that a NaN passes through.
  float y = x > 89.0f ? 89.0f : x;
  y = y < -104.0f ? -104.0f : y;

  // x = n ln2 + r with |r| <= ln2 / 2.
  const float shifted = y * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = (y - n * kLn2High) - n * kLn2Low;

  // e^r = 1 + r + r^2 q(r), q fitted for the least relative error (3e-9).
  float q = 1.3814320554956794e-3f;
  q = q * r + 8.36885068565607e-3f;
  q = q * r + 4.1668400168418884e-2f;
  q = q * r + 1.666651964187622e-1f;
  q = q * r + 4.999999403953552e-1f;
  const float p = (q * r) * r + r + 1.0f;

  // Times 2^n in two steps: each factor is a normal number for every n in [-151, 129], and only the
  // second product can round, once.
  const int32_t exponent =
      static_cast<int32_t>(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRound));
  const int32_t half = exponent >> 1;
  const auto power = [](int32_t k) {
    return std::bit_cast<float>((static_cast<uint32_t>(k) + 127u) << 23);
  };
  return p * power(half) * power(exponent - half);
}

inline double Exp(double x) { return std::exp(x); }

// ln(x) within 1 ulp, also for subnormal x. 0 and -0 give -inf, negative numbers NaN, inf gives
// inf, NaN gives NaN.
inline float Log(float x) {
  constexpr float kLn2High = 0.693359375f;
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr uint32_t kSqrtHalf = 0x3f3504f3u;

  // Subnormals are scaled into the normal range first.
  const bool is_tiny = x < std::numeric_limits<float>::min();
  const uint32_t bits = std::bit_cast<uint32_t>(is_tiny ? x * 0x1p23f : x);

  // x = 2^k m with m in [sqrt(1/2), sqrt(2)).
  const uint32_t biased = bits - kSqrtHalf;
  const float k = static_cast<float>((static_cast<int32_t>(biased) >> 23) - (is_tiny ? 23 : 0));
  const float f = std::bit_cast<float>((biased & 0x7fffffu) + kSqrtHalf) - 1.0f;

  // ln(1 + f) = f - f^2/2 + f^3 p(f), p fitted for the least relative error (6e-9).
  float p = -7.635651528835297e-2f;
  p = p * f + 1.276332587003708e-1f;
  p = p * f - 1.316058337688446e-1f;
  p = p * f + 1.4201553165912628e-1f;
  p = p * f - 1.6623298823833466e-1f;
  p = p * f + 2.0001234114170074e-1f;
  p = p * f - 2.50008225440979e-1f;
  p = p * f + 3.333333134651184e-1f;
  const float square = f * f;
  const float tail = (p * f) * square - 0.5f * square + k * kLn2Low;
  const float finite = k * kLn2High + (f + tail);

  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float not_positive = x == 0.0f ? -kInfinity : std::numeric_limits<float>::quiet_NaN();
  const float positive = x == kInfinity ? x : finite;
  return x > 0.0f ? positive : not_positive;  // a NaN takes the second way
}

}  // namespace opserve::kernels
