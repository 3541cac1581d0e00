// Widening to, and narrowing from, the type that kernels compute in.
//
// Widening is exact. Narrowing rounds to nearest, ties to even, and to infinity beyond the type's
// range; subnormals are kept on both sides, and a NaN stays a NaN. The scalar functions have no
// branches, so that the compiler vectorises the loops over them.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "kernels/cpu/kernel.h"

namespace opserve::kernels {

// Elements of FLOAT16 (IEEE binary16) and BF16 tensors.
struct Half {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};

inline float Widened(float value) { return value; }
inline double Widened(double value) { return value; }

inline float Widened(Bfloat16 value) { return std::bit_cast<float>(uint32_t{value.bits} << 16); }

inline float Widened(Half value) {
  const uint32_t magnitude = value.bits & 0x7fffu;
  const uint32_t sign = (value.bits & 0x8000u) << 16;
  // Read as a float's, the shifted exponent is too small by 2^112; the product is exact, also
  // where the half is subnormal. Infinities and NaN only need the largest exponent.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  const uint32_t special = magnitude >= 0x7c00u ? 0x7f800000u : 0u;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | special | sign);
}

template <typename Element>
Element Narrowed(float value);

template <>
inline float Narrowed<float>(float value) {
  return value;
}

template <>
inline double Narrowed<double>(float value) {
  return value;
}

template <>
inline Bfloat16 Narrowed<Bfloat16>(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet_nan = (bits >> 16) | 0x40u;
  return {static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded)};
}

template <>
inline Half Narrowed<Half>(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t sign = (bits >> 16) & 0x8000u;
  // From 2^-14 on: round off 13 bits and take 112 off the exponent.
  const uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
  // Below: next to 0.5 a float's last bit is 2^-24, the unit of subnormal halves.
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t finite = magnitude < (113u << 23) ? subnormal : normal;
  const uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x1ffu);
  const uint32_t limited = magnitude >= 0x477ff000u ? 0x7c00u : finite;  // 65520 rounds up to inf
  return {static_cast<uint16_t>(sign | (magnitude > 0x7f800000u ? nan : limited))};
}

// destination[i] = source[i] widened, for `count` contiguous elements that do not overlap. Inlined,
// so that a constant count leaves no loop.
template <typename Element, typename T>
[[gnu::always_inline]] inline void WidenBlock(const Element* __restrict source, int64_t count,
                                              T* __restrict destination) {
  for (int64_t i = 0; i < count; ++i) destination[i] = static_cast<T>(Widened(source[i]));
}

// destination[i] = source[i] rounded once, for `count` contiguous elements that do not overlap.
template <typename T, typename Element>
[[gnu::always_inline]] inline void NarrowBlock(const T* __restrict source, int64_t count,
                                               Element* __restrict destination) {
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, Element>) {
      destination[i] = source[i];
    } else {
      destination[i] = Narrowed<Element>(source[i]);
    }
  }
}

#ifdef __F16C__
// GCC 12 does not vectorise half conversions into these instructions by itself.
[[gnu::always_inline]] inline void WidenBlock(const Half* __restrict source, int64_t count,
                                              float* __restrict destination) {
  const int64_t whole = count & ~int64_t{7};
  for (int64_t i = 0; i < whole; i += 8) {
    const auto* from = reinterpret_cast<const __m128i*>(source + i);
    _mm256_storeu_ps(destination + i, _mm256_cvtph_ps(_mm_loadu_si128(from)));
  }
  for (int64_t i = 0; i < (count & 7); ++i) destination[whole + i] = Widened(source[whole + i]);
}

[[gnu::always_inline]] inline void NarrowBlock(const float* __restrict source, int64_t count,
                                               Half* __restrict destination) {
  const int64_t whole = count & ~int64_t{7};
  for (int64_t i = 0; i < whole; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(destination + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(source + i), _MM_FROUND_TO_NEAREST_INT));
  }
  for (int64_t i = 0; i < (count & 7); ++i) {
    destination[whole + i] = Narrowed<Half>(source[whole + i]);
  }
}
#endif

// The one place that knows which C++ type holds which dtype: visit(Element{}).
template <typename Visitor>
auto VisitDtype(Dtype dtype, Visitor visit) {
  switch (dtype) {
    case Dtype::kFloat:
      return visit(float{});
    case Dtype::kFloat16:
      return visit(Half{});
    case Dtype::kBfloat16:
      return visit(Bfloat16{});
    case Dtype::kDouble:
      return visit(double{});
  }
  __builtin_unreachable();
}

}  // namespace opserve::kernels
