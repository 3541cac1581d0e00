// Reading every other element with vectors.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/cpu/simd.h"

namespace opserve::kernels {

template <typename T, int kCount>
using Elements [[gnu::vector_size(kCount * sizeof(T))]] = T;

// kCount elements, `kStride` apart; nothing beyond the last one is read.
template <int kStride, int kCount, typename T, int... kIndices>
Elements<T, kCount> LoadStrided(const T* from, std::integer_sequence<int, kIndices...>) {
  static_assert(kStride == 1 || kStride == 2);
  Elements<T, kCount> low;
  std::memcpy(&low, from, sizeof(low));
  if constexpr (kStride == 1) return low;
  Elements<T, kCount> high;
  std::memcpy(&high, from + kCount - 1, sizeof(high));
  return __builtin_shufflevector(low, high, (2 * kIndices + (kIndices < kCount / 2 ? 0 : 1))...);
}
template <int kStride, int kCount, typename T>
Elements<T, kCount> LoadStrided(const T* from) {
  return LoadStrided<kStride, kCount>(from, std::make_integer_sequence<int, kCount>());
}

// Whether CopyEven copies elements of this type faster than a loop.
template <typename T>
inline constexpr bool kHasEven = std::is_arithmetic_v<T> && sizeof(T) == 4;

// to[i] = from[2 * i], a few at a time and the last ones, if they are fewer, once more.
template <typename T>
[[gnu::always_inline]] inline void CopyEven(const T* from, int64_t count, T* to) {
  static_assert(kHasEven<T>);
  const auto copy = [&](auto width) {
    constexpr int kWidth = width;
    const auto copy_from = [&](int64_t i) {
      const Elements<T, kWidth> elements = LoadStrided<2, kWidth>(from + 2 * i);
      std::memcpy(to + i, &elements, sizeof(elements));
    };
    for (int64_t i = 0; i + kWidth <= count; i += kWidth) copy_from(i);
    if (count % kWidth != 0) copy_from(count - kWidth);
  };
  if constexpr (kLanes > 8) {
    if (count >= kLanes) return copy(std::integral_constant<int, kLanes>());
  }
  if constexpr (kLanes >= 8) {
    if (count >= 8) return copy(std::integral_constant<int, 8>());
  }
  if (count >= 4) return copy(std::integral_constant<int, 4>());
  for (int64_t i = 0; i < count; ++i) to[i] = from[2 * i];
}

}  // namespace opserve::kernels
