// Sums and greatest values of terms that are computed in the registers' lanes. Their order depends
// on the number of terms only.
//
// A term is a callable that is given a reader: reader(p) is element i of p, or a register of the
// elements from i on, so that one lambda serves both. It returns what it computes from them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/simd.h"

namespace opserve::kernels {

// Reads single elements.
template <typename C>
struct ElementReader {
  int64_t i;
  [[gnu::always_inline]] C operator()(const C* elements) const { return elements[i]; }
};

// Reads registers.
struct RegisterReader {
  int64_t i;
  [[gnu::always_inline]] FloatVector operator()(const float* elements) const {
    return Load(elements + i);
  }
};

// Enough registers for instructions on some to fill the waiting times of the others, and enough
// lanes to keep each one's sum short.
inline constexpr int kTermLanes = std::max(32, 4 * kLanes);

// What combined(a, b) makes of a register's lanes: always of the first half and the second.
template <int kHalf, typename V, typename Combined, int... kIndices>
[[gnu::always_inline]] inline auto CombineLanes(V lanes, Combined combined,
                                                std::integer_sequence<int, kIndices...> indices) {
  if constexpr (kHalf == 0) {
    return lanes[0];
  } else {
    constexpr int kWidth = sizeof...(kIndices);
    const V others = __builtin_shufflevector(lanes, lanes, ((kIndices + kHalf) % kWidth)...);
    return CombineLanes<kHalf / 2>(combined(lanes, others), combined, indices);
  }
}

// What combined(a, b) makes of all terms and `start`; `combined` is associative and symmetric up to
// rounding, and a term combined with `start` is the term. Several terms, from the elements of the
// array that `terms` returns, are combined each for itself.
template <typename C, size_t kTerms, typename Terms, typename Combined>
[[gnu::always_inline]] inline std::array<C, kTerms> CombineTerms(int64_t count, C start,
                                                                 Terms terms, Combined combined) {
  using V = std::conditional_t<std::is_same_v<C, float>, FloatVector, C>;
  constexpr int kWidth = sizeof(V) / sizeof(C);
  constexpr int kRegisters = kTermLanes / kWidth;
  V registers[kTerms][kRegisters];
  for (auto& row : registers) {
    for (V& value : row) value = V{} + start;
  }
  const auto reader = [](int64_t i) {
    if constexpr (std::is_same_v<C, float>) {
      return RegisterReader{i};
    } else {
      return ElementReader<C>{i};
    }
  };
  int64_t i = 0;
  for (; i + kTermLanes <= count; i += kTermLanes) {
#pragma GCC unroll 32
    for (int j = 0; j < kRegisters; ++j) {
      const auto values = terms(reader(i + j * kWidth));
      for (size_t k = 0; k < kTerms; ++k) registers[k][j] = combined(registers[k][j], values[k]);
    }
  }
  for (; i + kWidth <= count; i += kWidth) {
    const auto values = terms(reader(i));
    for (size_t k = 0; k < kTerms; ++k) registers[k][0] = combined(registers[k][0], values[k]);
  }
  for (size_t k = 0; k < kTerms; ++k) {
#pragma GCC unroll 8
    for (int half = kRegisters / 2; half > 0; half /= 2) {
#pragma GCC unroll 16
      for (int j = 0; j < half; ++j) {
        registers[k][j] = combined(registers[k][j], registers[k][j + half]);
      }
    }
  }
  if (i < count) {
    C lanes[kTerms][kWidth];
    for (size_t k = 0; k < kTerms; ++k) std::memcpy(lanes[k], &registers[k][0], sizeof(V));
    for (int j = 0; i < count; ++i, ++j) {
      const auto values = terms(ElementReader<C>{i});
      for (size_t k = 0; k < kTerms; ++k) lanes[k][j] = combined(lanes[k][j], values[k]);
    }
    for (size_t k = 0; k < kTerms; ++k) std::memcpy(&registers[k][0], lanes[k], sizeof(V));
  }
  std::array<C, kTerms> results;
  for (size_t k = 0; k < kTerms; ++k) {
    if constexpr (std::is_same_v<C, float>) {
      // In registers: a sum of lanes in memory takes longer than that of a short row.
      results[k] = CombineLanes<kLanes / 2>(registers[k][0], combined,
                                            std::make_integer_sequence<int, kLanes>());
    } else {
      results[k] = registers[k][0];
    }
  }
  return results;
}

// The sums of several terms, which `terms` returns as an array.
template <typename C, size_t kTerms, typename Terms>
[[gnu::always_inline]] inline std::array<C, kTerms> SumsOf(int64_t count, Terms terms) {
  return CombineTerms<C, kTerms>(count, C{0}, terms, [](auto a, auto b) { return a + b; });
}

// The sum of one.
template <typename C, typename Term>
[[gnu::always_inline]] inline C SumOf(int64_t count, Term term) {
  const auto terms = [&](auto reader) { return std::array{term(reader)}; };
  return SumsOf<C, 1>(count, terms)[0];
}

// The greatest of the terms and `start`; NaNs are passed over.
template <typename C, typename Term>
[[gnu::always_inline]] inline C MaximumOf(int64_t count, C start, Term term) {
  const auto terms = [&](auto reader) { return std::array{term(reader)}; };
  return CombineTerms<C, 1>(count, start, terms, [](auto a, auto b) { return GreaterOr(b, a); })[0];
}

}  // namespace opserve::kernels
