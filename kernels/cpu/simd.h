// Vectors of float32 as wide as the processor's registers. Arithmetic, comparisons and `?:` on them
// are the compiler's vector extensions, so that one template serves single floats and vectors.
#pragma once

#include <bit>
#include <cstdint>

#ifdef __SSE4_1__
#include <immintrin.h>
#endif

namespace opserve::kernels {

#if defined(__AVX512F__)
#define OPSERVE_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define OPSERVE_VECTOR_BYTES 32
#else
#define OPSERVE_VECTOR_BYTES 16
#endif

inline constexpr int kLanes = OPSERVE_VECTOR_BYTES / 4;

typedef float FloatVector __attribute__((vector_size(OPSERVE_VECTOR_BYTES)));
typedef int32_t IntVector __attribute__((vector_size(OPSERVE_VECTOR_BYTES)));
typedef uint32_t UintVector __attribute__((vector_size(OPSERVE_VECTOR_BYTES)));
typedef uint16_t ShortVector __attribute__((vector_size(OPSERVE_VECTOR_BYTES / 2)));

#undef OPSERVE_VECTOR_BYTES

// Integers with as many bits, and as many lanes, as V has.
template <typename V>
struct IntegersOf;

template <>
struct IntegersOf<float> {
  using Signed = int32_t;
  using Unsigned = uint32_t;
};

template <>
struct IntegersOf<FloatVector> {
  using Signed = IntVector;
  using Unsigned = UintVector;
};

template <typename V>
using Signed = typename IntegersOf<V>::Signed;
template <typename V>
using Unsigned = typename IntegersOf<V>::Unsigned;

// The nearest floats of integers.
inline float ToFloat(int32_t value) { return static_cast<float>(value); }
inline FloatVector ToFloat(IntVector value) { return __builtin_convertvector(value, FloatVector); }

// The lesser or greater of a value and a bound; NaN where the value is one. (Comparison and choice
// would not become the instruction for it.)
inline double AtLeast(double value, double bound) { return value < bound ? bound : value; }
inline float AtMost(float value, float bound) { return value > bound ? bound : value; }
inline float AtLeast(float value, float bound) { return value < bound ? bound : value; }
inline FloatVector AtMost(FloatVector value, float bound) {
#if defined(__AVX512F__)
  return _mm512_min_ps(_mm512_set1_ps(bound), value);
#elif defined(__AVX2__)
  return _mm256_min_ps(_mm256_set1_ps(bound), value);
#elif defined(__SSE4_1__)
  return _mm_min_ps(_mm_set1_ps(bound), value);
#else
  return value > bound ? bound : value;
#endif
}
inline FloatVector AtLeast(FloatVector value, float bound) {
#if defined(__AVX512F__)
  return _mm512_max_ps(_mm512_set1_ps(bound), value);
#elif defined(__AVX2__)
  return _mm256_max_ps(_mm256_set1_ps(bound), value);
#elif defined(__SSE4_1__)
  return _mm_max_ps(_mm_set1_ps(bound), value);
#else
  return value < bound ? bound : value;
#endif
}

// a if it is greater than b, else b, also where one of them is NaN: the processor's maximum. And
// the same of the lesser. (The compiler knows the instructions for single floats only.)
inline double GreaterOr(double a, double b) { return a > b ? a : b; }
inline float GreaterOr(float a, float b) { return a > b ? a : b; }
inline double LesserOr(double a, double b) { return a < b ? a : b; }
inline float LesserOr(float a, float b) { return a < b ? a : b; }
inline FloatVector GreaterOr(FloatVector a, FloatVector b) {
#if defined(__AVX512F__)
  return _mm512_max_ps(a, b);
#elif defined(__AVX2__)
  return _mm256_max_ps(a, b);
#elif defined(__SSE4_1__)
  return _mm_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}
inline FloatVector LesserOr(FloatVector a, FloatVector b) {
#if defined(__AVX512F__)
  return _mm512_min_ps(a, b);
#elif defined(__AVX2__)
  return _mm256_min_ps(a, b);
#elif defined(__SSE4_1__)
  return _mm_min_ps(a, b);
#else
  return a < b ? a : b;
#endif
}

// Before a loop each of whose iterations reads and writes one place only: GCC looks for overlaps of
// a few arrays, and leaves loops over more of them as they are.
#ifdef __clang__
#define OPSERVE_INDEPENDENT_ITERATIONS
#else
#define OPSERVE_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

// Shorts as integers and, where they fit, back. (GCC 12 takes many instructions for conversions of
// vectors.)
inline UintVector ToInts(ShortVector shorts) {
#if defined(__AVX512F__)
  return std::bit_cast<UintVector>(_mm512_cvtepu16_epi32(std::bit_cast<__m256i>(shorts)));
#elif defined(__AVX2__)
  return std::bit_cast<UintVector>(_mm256_cvtepu16_epi32(std::bit_cast<__m128i>(shorts)));
#else
  return __builtin_convertvector(shorts, UintVector);
#endif
}
inline ShortVector ToShorts(UintVector integers) {
#if defined(__AVX512F__)
  return std::bit_cast<ShortVector>(_mm512_cvtepi32_epi16(std::bit_cast<__m512i>(integers)));
#elif defined(__AVX2__)
  const auto all = std::bit_cast<__m256i>(integers);
  return std::bit_cast<ShortVector>(
      _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1)));
#else
  return __builtin_convertvector(integers, ShortVector);
#endif
}

}  // namespace opserve::kernels
