// Products with what rounding takes from them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace opserve::kernels {

// a b - product, where product is a b, rounded: exact but for subnormals.
[[gnu::always_inline]] inline float ProductRest(float a, float b, float product) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, -product);
#else
  const float a_high = std::bit_cast<float>(std::bit_cast<uint32_t>(a) & 0xfffff000u);
  const float b_high = std::bit_cast<float>(std::bit_cast<uint32_t>(b) & 0xfffff000u);
  const float a_low = a - a_high;
  const float b_low = b - b_high;
  return ((a_high * b_high - product) + (a_high * b_low + a_low * b_high)) + a_low * b_low;
#endif
}

// sum + a b, as if only the sum were rounded.
[[gnu::always_inline]] inline float PlusProduct(float sum, float a, float b) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, sum);
#else
  const float product = a * b;
  return (sum + product) + ProductRest(a, b, product);
#endif
}

// 1 - a b, rounded once, for products near 1.
[[gnu::always_inline]] inline float OneMinusProduct(float a, float b) {
  const float product = a * b;
  return (1.0f - product) - ProductRest(a, b, product);
}

// A product of two numbers as a sum, the second of which makes up for rounding: of the product in
// float, and of the first factor, a parameter, of which `rest` is left. Infinities have no rest.
template <typename T>
struct ExactProduct {
  ExactProduct(T parameter, T rest, T x) : high(parameter * x) {
    if constexpr (std::is_same_v<T, float>) {
      const float more = ProductRest(parameter, x, high) + rest * x;
      low = std::fabs(high) < 1e4f ? more : 0.0f;
    }
  }
  T high;
  T low = 0;
};

}  // namespace opserve::kernels
