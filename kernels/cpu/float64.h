// Powers of e and logarithms in float64 without branches, so that loops over them become vectors:
// for formulas that lose more digits than float32 has. Errors are in units of the last place (ulp)
// that float64 has at the true value: at most two and a half, to which math_test.cc holds them.
// Their series are Taylor's, as far as float64 can tell.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/logarithms.h"
#include "kernels/cpu/math.h"

namespace opserve::kernels {

// e^x. -inf gives 0, +inf and x > ln(DBL_MAX) give inf, NaN gives NaN.
[[gnu::always_inline]] inline double VectorExp(double x) {
  constexpr double kLog2E = 0x1.71547652b82fep+0;
  constexpr double kLn2High = 0x1.62e42fefa0000p-1;  // 33 bits: its product with n is exact
  constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;
  // Adding it leaves the nearest integer, and twice the bias of exponents, in the low bits.
  constexpr double kRound = 0x1.8p52 + 2046.0;

  // Beyond these the result is inf or 0 anyway. Written so that a NaN passes through.
  const double below = x > 710.0 ? 710.0 : x;
  const double y = below < -746.0 ? -746.0 : below;
  const double shifted = y * kLog2E + kRound;
  const double n = shifted - kRound;
  const double r = (y - n * kLn2High) - n * kLn2Low;  // |r| <= ln2 / 2

  // e^r = 1 + r + r^2 q(r)
  const double square = r * r;
  const double fourth = square * square;
  const double q01 = r * (1.0 / 6) + 0.5;
  const double q23 = r * (1.0 / 120) + 1.0 / 24;
  const double q45 = r * (1.0 / 5040) + 1.0 / 720;
  const double q67 = r * (1.0 / 362880) + 1.0 / 40320;
  const double q89 = r * (1.0 / 39916800) + 1.0 / 3628800;
  const double qab = r * (1.0 / 6227020800) + 1.0 / 479001600;
  const double high = (qab * square + q89) * fourth + (q67 * square + q45);
  const double q = high * fourth + (q23 * square + q01);
  const double p = (q * square + r) + 1.0;

  // Times 2^n in two steps, each of them a normal number.
  const auto biased = std::bit_cast<uint64_t>(shifted);
  const uint64_t half = (biased & 0xfff) >> 1;
  return p * std::bit_cast<double>(half << 52) *
         std::bit_cast<double>(((biased & 0xfff) - half) << 52);
}
inline float VectorExp(float x) { return Exp(x); }

// ln(a / (b + rest)) for positive a and b in [2^-1000, 2^1000] whose quotient is in that range,
// too; `rest` is what rounding has taken from b.
[[gnu::always_inline]] inline double VectorLogOfQuotient(double a, double b, double rest = 0) {
  constexpr double kLn2High = 0x1.62e42fefa0000p-1;
  constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;
  constexpr uint64_t kBias = 2048;  // keeps k positive, which shifts of vectors ask for
  // a / b = 2^k c with c in [2/3, 3/2]: bits are nearly logarithms.
  const uint64_t difference = std::bit_cast<uint64_t>(a) - std::bit_cast<uint64_t>(b);
  const uint64_t biased = (difference + (kBias << 52) + (uint64_t{1} << 51)) >> 52;
  const double k = std::bit_cast<double>(biased | 0x4330000000000000) - (0x1p52 + kBias);
  const double scale = std::bit_cast<double>((biased - kBias + 1023) << 52);
  const double scaled = b * scale;
  // ln c = 2 atanh(s) = 2 s + 2 s^3 t(s^2) with |s| <= 1/5; the dividend is exact.
  const double s = ((a - scaled) - rest * scale) / (a + scaled);
  const double square = s * s;
  const double fourth = square * square;
  const double eighth = fourth * fourth;
  const double t01 = square * (2.0 / 5) + 2.0 / 3;
  const double t23 = square * (2.0 / 9) + 2.0 / 7;
  const double t45 = square * (2.0 / 13) + 2.0 / 11;
  const double t67 = square * (2.0 / 17) + 2.0 / 15;
  const double t89 = square * (2.0 / 21) + 2.0 / 19;
  const double tail = (t89 * eighth + (t67 * fourth + t45)) * eighth + (t23 * fourth + t01);
  return k * kLn2High + (2.0 * s + (tail * square * s + k * kLn2Low));
}

// The result of a logarithm of x for x outside (0, inf), else `finite`.
[[gnu::always_inline]] inline double VectorLogDomain(double x, double finite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double positive = x < kInfinity ? finite : x;
  const double negative = x == 0.0 ? -kInfinity : std::numeric_limits<double>::quiet_NaN();
  return x > 0.0 ? positive : negative;
}

// ln(x); -inf for 0, NaN below it.
[[gnu::always_inline]] inline double VectorLog(double x) {
  // The ends of the range are brought nearer, by powers of 2.
  const bool is_tiny = x < 0x1p-500;
  const bool is_huge = x > 0x1p500;
  const double near_one = is_tiny ? x * 0x1p600 : (is_huge ? x * 0x1p-600 : x);
  const double more = is_tiny ? -0x1.9fe3682cd3be4p+8 : (is_huge ? 0x1.9fe3682cd3be4p+8 : 0.0);
  return VectorLogDomain(x, VectorLogOfQuotient(near_one, 1.0) + more);
}

inline float VectorLog(float x) { return LogDomain(x, Log(x)); }

// ln(1 - x) for x in [0, 1]; NaN above.
[[gnu::always_inline]] inline double VectorLogOfComplement(double x) {
  const double difference = 1.0 - x;
  const double rest = (1.0 - difference) - x;  // 1 - x = difference + rest, where it matters
  const double log = VectorLogOfQuotient(difference, 1.0);
  const double magnitude = std::fabs(x);
  const double finite = magnitude < 0x1p-30 ? -x - 0.5 * x * x : log + rest;
  return VectorLogDomain(difference, finite);
}
inline float VectorLogOfComplement(float x) { return Log1p(-x); }

// ln(x / (1 - x)); infinities at 0 and 1, NaN outside.
[[gnu::always_inline]] inline double VectorLogit(double x) {
  const bool is_tiny = x < 0x1p-500;
  const double difference = 1.0 - x;
  const double rest = (1.0 - difference) - x;
  const double log = VectorLogOfQuotient(is_tiny ? x * 0x1p600 : x, difference, rest);
  const double finite = is_tiny ? log - 0x1.9fe3682cd3be4p+8 : log;
  return VectorLogDomain(x, x < 1.0 ? finite : -VectorLogDomain(1.0 - x, 0.0));
}
inline float VectorLogit(float x) { return Logit(x); }

}  // namespace opserve::kernels
