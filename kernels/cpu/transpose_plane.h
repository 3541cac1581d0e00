// Planes of elements whose rows become columns.
#pragma once

#include <cstdint>

#include "kernels/cpu/transpose.h"

namespace opserve::kernels {

// to[i * to_pitch + j] = from[i + j * from_pitch]
template <typename T>
void TransposePlane(const T* from, int64_t from_pitch, int64_t num_rows, int64_t num_columns, T* to,
                    int64_t to_pitch) {
  constexpr int64_t kSide = 8;
  const int64_t whole_rows = num_rows - num_rows % kSide;
  const int64_t whole_columns = num_columns - num_columns % kSide;
  for (int64_t i = 0; i < whole_rows; i += kSide) {
    for (int64_t j = 0; j < whole_columns; j += kSide) {
      TransposeSquare(from + i + j * from_pitch, from_pitch, to + i * to_pitch + j, to_pitch);
    }
    for (int64_t j = whole_columns; j < num_columns; ++j) {
      for (int64_t k = i; k < i + kSide; ++k) to[k * to_pitch + j] = from[k + j * from_pitch];
    }
  }
  for (int64_t i = whole_rows; i < num_rows; ++i) {
    for (int64_t j = 0; j < num_columns; ++j) to[i * to_pitch + j] = from[i + j * from_pitch];
  }
}

}  // namespace opserve::kernels
