// Widening to, and narrowing from, the type that kernels compute in.
//
// Widening is exact. Narrowing rounds to nearest, ties to even, and to infinity beyond the type's
// range; subnormals are kept on both sides, and a NaN stays a NaN.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/simd.h"

namespace opserve::kernels {

// Elements of FLOAT16 (IEEE binary16) and BF16 tensors.
struct Half {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};

// Elements of BOOL tensors.
struct Bool {
  uint8_t byte;
};

// The float of a half or bfloat16 whose bits are the lower 16. V is float or FloatVector.
template <typename V>
[[gnu::always_inline]] inline V HalfFromBits(Unsigned<V> bits) {
  const Unsigned<V> magnitude = bits & 0x7fffu;
  const Unsigned<V> sign = (bits & 0x8000u) << 16;
  // Read as a float's, the shifted exponent is too small by 2^112; the product is exact, also
  // where the half is subnormal. Infinities and NaN only need the largest exponent.
  const V scaled = std::bit_cast<V>(magnitude << 13) * 0x1p112f;
  const Unsigned<V> special = magnitude >= 0x7c00u ? 0x7f800000u : 0u;
  return std::bit_cast<V>(std::bit_cast<Unsigned<V>>(scaled) | special | sign);
}

template <typename V>
[[gnu::always_inline]] inline V Bfloat16FromBits(Unsigned<V> bits) {
  return std::bit_cast<V>(bits << 16);
}

// The reverse.
template <typename V>
[[gnu::always_inline]] inline Unsigned<V> HalfBits(V value) {
  const auto bits = std::bit_cast<Unsigned<V>>(value);
  const Unsigned<V> magnitude = bits & 0x7fffffffu;
  const Unsigned<V> sign = (bits >> 16) & 0x8000u;
  // From 2^-14 on: round off 13 bits and take 112 off the exponent.
  const Unsigned<V> normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
  // Below: next to 0.5 a float's last bit is 2^-24, the unit of subnormal halves.
  const Unsigned<V> subnormal =
      std::bit_cast<Unsigned<V>>(std::bit_cast<V>(magnitude) + 0.5f) - 0x3f000000u;
  const Unsigned<V> finite = magnitude < (113u << 23) ? subnormal : normal;
  const Unsigned<V> nan = 0x7e00u | ((magnitude >> 13) & 0x1ffu);
  const Unsigned<V> limited =
      magnitude >= 0x477ff000u ? 0x7c00u : finite;  // 65520 rounds up to inf
  return sign | (magnitude > 0x7f800000u ? nan : limited);
}

template <typename V>
[[gnu::always_inline]] inline Unsigned<V> Bfloat16Bits(V value) {
  const auto bits = std::bit_cast<Unsigned<V>>(value);
  const Unsigned<V> rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const Unsigned<V> quiet_nan = (bits >> 16) | 0x40u;
  return value != value ? quiet_nan : rounded;
}

inline float Widened(float value) { return value; }
inline double Widened(double value) { return value; }
inline float Widened(Half value) { return HalfFromBits<float>(value.bits); }
inline float Widened(Bfloat16 value) { return Bfloat16FromBits<float>(value.bits); }
inline int64_t Widened(int8_t value) { return value; }
inline int64_t Widened(uint8_t value) { return value; }
inline int64_t Widened(int16_t value) { return value; }
inline int64_t Widened(int32_t value) { return value; }
inline int64_t Widened(int64_t value) { return value; }
inline int64_t Widened(Bool value) { return value.byte != 0 ? 1 : 0; }

template <typename Element>
Element Narrowed(float value);

template <>
inline float Narrowed<float>(float value) {
  return value;
}

template <>
inline Half Narrowed<Half>(float value) {
  return {static_cast<uint16_t>(HalfBits(value))};
}

template <>
inline Bfloat16 Narrowed<Bfloat16>(float value) {
  return {static_cast<uint16_t>(Bfloat16Bits(value))};
}

// A float that rounds to any narrower type as `value` does: cut off towards zero, and with the last
// bit set if that has lost something.
inline float RoundedToOdd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto widened = static_cast<double>(nearest);
  if (widened == value || value != value) return nearest;
  const uint32_t is_above = std::fabs(widened) > std::fabs(value) ? 1 : 0;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(nearest) - is_above) | 1u);
}

// The integer that `value` has after its fraction is cut off, or the nearest that To has; 0 of NaN.
template <typename To, typename From>
inline To Truncated(From value) {
  // Powers of two, or 0: exact in any floating type.
  constexpr From kLeast = static_cast<From>(std::numeric_limits<To>::min());
  constexpr From kBeyond = 2 * static_cast<From>(std::numeric_limits<To>::max() / 2 + 1);
  const From some = value > kLeast && value < kBeyond ? value : From{0};
  const To inside = static_cast<To>(some);
  const To below = value <= kLeast ? std::numeric_limits<To>::min() : inside;
  return value >= kBeyond ? std::numeric_limits<To>::max() : below;
}

// `value` as To: widened, rounded once, or as it is. Integers wrap, what is not 0 is true.
template <typename To, typename From>
inline To Converted(From value) {
  if constexpr (std::is_same_v<From, To>) {
    return value;
  } else if constexpr (std::is_same_v<To, Bool>) {
    return {static_cast<uint8_t>(Widened(value) != 0 ? 1 : 0)};
  } else if constexpr (std::is_integral_v<To>) {
    if constexpr (std::is_same_v<decltype(Widened(value)), int64_t>) {
      return static_cast<To>(Widened(value));
    } else {
      return Truncated<To>(Widened(value));
    }
  } else if constexpr (std::is_same_v<To, double> || std::is_same_v<To, float>) {
    return static_cast<To>(Widened(value));
  } else if constexpr (std::is_same_v<decltype(Widened(value)), float>) {
    return Narrowed<To>(Widened(value));
  } else {
    return Narrowed<To>(RoundedToOdd(static_cast<double>(Widened(value))));
  }
}

// Whether an element is computed in float32.
template <typename Element>
inline constexpr bool kIsFloatLike =
    std::is_same_v<Element, float> || std::is_same_v<Element, Half> ||
    std::is_same_v<Element, Bfloat16>;

// What kLanesOf<Element> elements are computed as.
template <typename Element>
using Register = std::conditional_t<std::is_same_v<Element, double>, double, FloatVector>;
template <typename Element>
inline constexpr int kLanesOf = std::is_same_v<Element, double> ? 1 : kLanes;

// The elements from `source` on, widened.
[[gnu::always_inline]] inline double Load(const double* source) { return *source; }
[[gnu::always_inline]] inline FloatVector Load(const float* source) {
  FloatVector values;
  std::memcpy(&values, source, sizeof(values));
  return values;
}
[[gnu::always_inline]] inline FloatVector Load(const Bfloat16* source) {
  ShortVector shorts;
  std::memcpy(&shorts, source, sizeof(shorts));
  return Bfloat16FromBits<FloatVector>(ToInts(shorts));
}
[[gnu::always_inline]] inline FloatVector Load(const Half* source) {
  ShortVector shorts;
  std::memcpy(&shorts, source, sizeof(shorts));
#if defined(__AVX512F__)
  return _mm512_cvtph_ps(std::bit_cast<__m256i>(shorts));
#elif defined(__F16C__)
  return _mm256_cvtph_ps(std::bit_cast<__m128i>(shorts));
#else
  return HalfFromBits<FloatVector>(ToInts(shorts));
#endif
}

// Values as they lie in memory, each rounded once. The second argument only selects the type.
[[gnu::always_inline]] inline double Packed(double value, const double*) { return value; }
[[gnu::always_inline]] inline FloatVector Packed(FloatVector values, const float*) {
  return values;
}
[[gnu::always_inline]] inline ShortVector Packed(FloatVector values, const Bfloat16*) {
  return ToShorts(Bfloat16Bits(values));
}
[[gnu::always_inline]] inline ShortVector Packed(FloatVector values, const Half*) {
#if defined(__AVX512F__)
  return std::bit_cast<ShortVector>(_mm512_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
  return std::bit_cast<ShortVector>(_mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
#else
  return ToShorts(HalfBits(values));
#endif
}

// destination[i] = source[i], widened or rounded once, for `count` contiguous elements that do not
// overlap.
template <typename From, typename To>
[[gnu::always_inline]] inline void ConvertBlock(const From* __restrict source, int64_t count,
                                                To* __restrict destination) {
  const int64_t rest = count % kLanes;
  const int64_t whole = count - rest;
  for (int64_t i = 0; i < whole; i += kLanes) {
    if constexpr (!kIsFloatLike<From> || !kIsFloatLike<To>) {
      for (int j = 0; j < kLanes; ++j) destination[i + j] = Converted<To>(source[i + j]);
    } else if constexpr (std::is_same_v<From, To> && sizeof(To) == 2) {
      std::memcpy(destination + i, source + i, kLanes * sizeof(To));
    } else {
      // Floats, too, in whole registers: what is stored in smaller pieces is slow to load again.
      const auto packed = Packed(Load(source + i), destination);
      std::memcpy(destination + i, &packed, sizeof(packed));
    }
  }
  for (int64_t i = 0; i < rest; ++i) destination[whole + i] = Converted<To>(source[whole + i]);
}

template <typename Element>
inline constexpr Dtype kDtypeOf = Dtype::kFloat;
template <>
inline constexpr Dtype kDtypeOf<Half> = Dtype::kFloat16;
template <>
inline constexpr Dtype kDtypeOf<Bfloat16> = Dtype::kBfloat16;
template <>
inline constexpr Dtype kDtypeOf<double> = Dtype::kDouble;
template <>
inline constexpr Dtype kDtypeOf<int64_t> = Dtype::kInt64;
template <>
inline constexpr Dtype kDtypeOf<int32_t> = Dtype::kInt32;

// Calls visit(Element{}) with the type of `dtype`.
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
    case Dtype::kInt8:
      return visit(int8_t{});
    case Dtype::kUint8:
      return visit(uint8_t{});
    case Dtype::kInt16:
      return visit(int16_t{});
    case Dtype::kInt32:
      return visit(int32_t{});
    case Dtype::kInt64:
      return visit(int64_t{});
    case Dtype::kBool:
      return visit(Bool{});
  }
  __builtin_unreachable();
}

}  // namespace opserve::kernels
