// Products of packed strips of two factors (packing.h), summed up in registers.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/packing.h"
#include "kernels/cpu/simd.h"

namespace opserve::kernels {

// Where the sums of products of two strips go: rows of neighbours.
template <typename C>
struct StripSums {
  C* place = nullptr;
  int64_t pitch = 0;
  // Sums of the depth before, or null.
  const C* before = nullptr;
  int64_t before_pitch = 0;
  // Or null: `beta` times these are added; of each row one for all columns, or one for each.
  const C* added = nullptr;
  int64_t added_pitch = 0;
  bool is_same_in_row = false;
  C beta = 1;
};

// The sums of products of two strips, of the left one's first kRows lines and the first kVectors
// vectors of the right one's. A function of its own, so that the compiler keeps all that it counts
// with in registers.
template <int kRows, int kVectors, typename C>
[[gnu::noinline]] void MultiplyStrips(const C* left, const C* right, int64_t depth,
                                      const StripSums<C>& sums) {
  typedef C Vector __attribute__((vector_size(sizeof(FloatVector))));
  constexpr int kWidth = sizeof(FloatVector) / sizeof(C);
  const auto load = [](const C* from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof(vector));
    return vector;
  };
  Vector products[kRows][kVectors] = {};
  for (int64_t k = 0; k < depth; ++k) {
    Vector lines[kVectors];
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) lines[j] = load(right + j * kWidth);
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) products[i][j] += left[i] * lines[j];
    }
    left += kStripRows;
    right += kStripColumns<C>;
  }
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) {
    const C* const added = sums.added == nullptr ? nullptr : sums.added + i * sums.added_pitch;
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      Vector sum = products[i][j];
      if (sums.before != nullptr) sum += load(sums.before + i * sums.before_pitch + j * kWidth);
      if (added != nullptr) {
        if (sums.is_same_in_row) {
          sum += sums.beta * added[0];
        } else {
          sum += sums.beta * load(added + j * kWidth);
        }
      }
      std::memcpy(sums.place + i * sums.pitch + j * kWidth, &sum, sizeof(sum));
    }
  }
}

// Strips have a third of the rows, two or all, and half of the columns or all: lines that are
// missing cost little.
inline constexpr int kStripThird = kStripRows / 3;

// The same of strips that have `rows` and `columns` lines, and more sums than these if strips of
// theirs have more.
template <typename C>
void MultiplyStrips(int64_t rows, int64_t columns, const C* left, const C* right, int64_t depth,
                    const StripSums<C>& sums) {
  const auto multiply = [&](auto vectors) {
    constexpr int kVectors = vectors;
    if (rows > 2 * kStripThird) {
      MultiplyStrips<kStripRows, kVectors>(left, right, depth, sums);
    } else if (rows > kStripThird) {
      MultiplyStrips<2 * kStripThird, kVectors>(left, right, depth, sums);
    } else {
      MultiplyStrips<kStripThird, kVectors>(left, right, depth, sums);
    }
  };
  if (columns > kStripColumns<C> / 2) {
    multiply(std::integral_constant<int, 2>());
  } else {
    multiply(std::integral_constant<int, 1>());
  }
}

// How many of so many lines are in strips that have no sums besides.
constexpr int64_t WholeLines(int64_t lines, int64_t strip, int64_t part) {
  const int64_t rest = lines % strip;
  return rest % part == 0 ? lines : lines - rest;
}

}  // namespace opserve::kernels
