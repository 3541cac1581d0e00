// More logarithms in float32 without branches, so that loops over them become vectors; their
// overloads for double are the standard library's. Errors are in units of the last place (ulp) that
// float32 has at the true value; math_test.cc holds them to it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/simd.h"

namespace opserve::kernels {

// x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
struct SplitFloat {
  int32_t k;
  float f;
};

// Of positive finite numbers, also subnormal ones.
[[gnu::always_inline]] inline SplitFloat Split(float x) {
  constexpr uint32_t kSqrtHalf = 0x3f3504f3;
  const bool is_subnormal = x < std::numeric_limits<float>::min();
  const float normal = is_subnormal ? x * 0x1p23f : x;
  const uint32_t bits = std::bit_cast<uint32_t>(normal) - kSqrtHalf;
  const int32_t k = static_cast<int32_t>(bits) >> 23;
  const float f = std::bit_cast<float>((bits & 0x7fffffu) + kSqrtHalf) - 1.0f;
  return {is_subnormal ? k - 23 : k, f};
}

// ln(1 + f) - f for 1 + f in [sqrt(1/2), sqrt(2)): f^2 (f p(f) - 1/2), p fitted for the least error
// relative to ln(1 + f) (6e-9). The coefficients are those of Log.
[[gnu::always_inline]] inline float LogTail(float f) {
  const float square = f * f;
  const float p01 = -2.50008225440979e-1f * f + 3.333333134651184e-1f;
  const float p23 = -1.6623298233847046e-1f * f + 2.0001234114170074e-1f;
  const float p45 = -1.316058337688446e-1f * f + 1.4201553165912628e-1f;
  const float p67 = -7.635651528835297e-2f * f + 1.276332587003708e-1f;
  const float p = (p67 * square + p45) * (square * square) + (p23 * square + p01);
  return (p * f - 0.5f) * square;
}

// The result of a logarithm of x for x outside (0, inf), else `finite`.
[[gnu::always_inline]] inline float LogDomain(float x, float finite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float positive = x == kInfinity ? x : finite;
  const float negative = x == 0.0f ? -kInfinity : std::numeric_limits<float>::quiet_NaN();
  return x > 0.0f ? positive : negative;
}

// log2(x), within 1 ulp and a half, exact for powers of two. -inf for 0.
[[gnu::always_inline]] inline float Log2(float x) {
  constexpr float kHigh = 1.44287109f;  // 12 bits of 1 / ln2
  constexpr float kLow = -1.76052854e-4f;
  const SplitFloat split = Split(x);
  // The product with the upper bits of f is exact, so that the sum is rounded once.
  const float high = std::bit_cast<float>(std::bit_cast<uint32_t>(split.f) & 0xfffff000u);
  const float rest = (split.f - high) + LogTail(split.f);
  const float fraction = high * kHigh + (rest * (kHigh + kLow) + high * kLow);
  return LogDomain(x, static_cast<float>(split.k) + fraction);
}
inline double Log2(double x) { return std::log2(x); }

// log10(x), within 1 ulp and a half. -inf for 0.
[[gnu::always_inline]] inline float Log10(float x) {
  constexpr float kHigh = 0.434326172f;  // 12 bits of 1 / ln10
  constexpr float kLow = -3.1689971e-5f;
  constexpr float kLog2High = 0.301025391f;  // 12 bits of log10(2)
  constexpr float kLog2Low = 4.6050390e-6f;
  const SplitFloat split = Split(x);
  const auto k = static_cast<float>(split.k);
  const float high = std::bit_cast<float>(std::bit_cast<uint32_t>(split.f) & 0xfffff000u);
  const float rest = (split.f - high) + LogTail(split.f);
  const float fraction = rest * (kHigh + kLow) + (high * kLow + k * kLog2Low);
  return LogDomain(x, k * kLog2High + (high * kHigh + fraction));
}
inline double Log10(double x) { return std::log10(x); }

// ln(1 + x), with the sign of x, within 1 ulp and a half. -inf for -1.
[[gnu::always_inline]] inline float Log1p(float x) {
  constexpr float kLn2High = 0.693359375f;
  constexpr float kLn2Low = -2.12194440e-4f;
  const float sum = x + 1.0f;
  const float rest = x < 1.0f ? x - (sum - 1.0f) : 1.0f - (sum - x);  // x + 1 = sum + rest
  const SplitFloat split = Split(sum);
  // 2^-k, or 0, which is as good, for k = 127 and 128.
  const float scale =
      std::bit_cast<float>(static_cast<uint32_t>(split.k < 127 ? 127 - split.k : 0) << 23);
  const float f = rest * scale + split.f;
  const auto k = static_cast<float>(split.k);
  const float finite = k * kLn2High + (f + (k * kLn2Low + LogTail(f)));
  const float result = LogDomain(sum, finite);
  return std::copysign(result, x);
}
inline double Log1p(double x) { return std::log1p(x); }

// The same of x in [0, 1], where it has fewer cases.
[[gnu::always_inline]] inline float Log1pOfFraction(float x) {
  constexpr float kLn2High = 0.693359375f;
  constexpr float kLn2Low = -2.12194440e-4f;
  const float sum = x + 1.0f;
  const float rest = x - (sum - 1.0f);
  const bool is_halved = sum > 1.41421356f;
  const float f = is_halved ? (sum * 0.5f - 1.0f) + rest * 0.5f : (sum - 1.0f) + rest;
  const float high = is_halved ? kLn2High : 0.0f;
  const float low = is_halved ? kLn2Low : 0.0f;
  return high + (f + (low + LogTail(f)));
}

// ln(x / (1 - x)), within 2 ulp; infinities at 0 and 1, NaN outside.
[[gnu::always_inline]] inline float Logit(float x) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kLn2High = 0.693359375f;
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr uint32_t kBias = 256;  // keeps k positive, which shifts of vectors ask for
  const bool is_tiny = x < 0x1p-60f;
  const float dividend = is_tiny ? x * 0x1p90f : x;
  const float divisor = 1.0f - x;
  const float rest = (1.0f - divisor) - x;  // 1 - x = divisor + rest
  // dividend / divisor = 2^k c with c in [2/3, 3/2]: bits are nearly logarithms.
  const uint32_t difference = std::bit_cast<uint32_t>(dividend) - std::bit_cast<uint32_t>(divisor);
  const uint32_t biased = (difference + (kBias << 23) + (1u << 22)) >> 23;
  const float scale = std::bit_cast<float>((biased - kBias + 127) << 23);
  // ln c = 2 atanh(s) = 2 s + 2 s^3 t(s^2); the dividend is exact. In the middle 2^k is 1, and the
  // divisor x + (1 - x), too: s has no error where the result is least.
  const float middle = 2.0f * x - 1.0f;
  const bool is_middle = std::fabs(middle) < 1.0f / 3;
  const float scaled = divisor * scale;
  const float quotient = ((dividend - scaled) - rest * scale) / (dividend + scaled);
  const float s = is_middle ? middle : quotient;
  const int32_t power = static_cast<int32_t>(biased - kBias) - (is_tiny ? 90 : 0);
  const float k = is_middle ? 0.0f : static_cast<float>(power);
  const float square = s * s;
  const float fourth = square * square;
  const float t01 = square * (2.0f / 5) + 2.0f / 3;
  const float t23 = square * (2.0f / 9) + 2.0f / 7;
  const float t456 = (square * (2.0f / 15) + 2.0f / 13) * square + 2.0f / 11;
  const float tail = (t456 * fourth + t23) * fourth + t01;
  const float finite = k * kLn2High + (2.0f * s + (tail * square * s + k * kLn2Low));
  const float inside = x == 0.0f ? -kInfinity : (x == 1.0f ? kInfinity : finite);
  return x >= 0.0f && x <= 1.0f ? inside : std::numeric_limits<float>::quiet_NaN();
}

}  // namespace opserve::kernels
