// Sums in an order that depends on the number of terms only.
#pragma once

#include <cstdint>

namespace opserve::kernels {

inline constexpr int kSumLanes = 32;

// accumulators += values, where `values` is rows x columns and the accumulators' rows are `pitch`
// >= columns apart. No overlap.
template <typename T>
void AddTile(const T* __restrict values, int64_t rows, int64_t columns, int64_t pitch,
             T* __restrict accumulators) {
  if (columns == pitch) {
    for (int64_t i = 0; i < rows * columns; ++i) accumulators[i] += values[i];
    return;
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) accumulators[i * pitch + j] += values[i * columns + j];
  }
}

// The sum of `count` values: lane j of 32 takes every 32nd value from j on, then the upper half of
// the lanes is added to the lower until one is left.
template <typename T>
T Sum(const T* values, int64_t count) {
  T lanes[kSumLanes] = {};
  int64_t i = 0;
  for (; i + kSumLanes <= count; i += kSumLanes) {
    for (int j = 0; j < kSumLanes; ++j) lanes[j] += values[i + j];
  }
  for (int j = 0; i + j < count; ++j) lanes[j] += values[i + j];
  for (int width = kSumLanes / 2; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) lanes[j] += lanes[j + width];
  }
  return lanes[0];
}

// sums[i] = sum of row i of a rows x columns tile. Short rows are summed from left to right, all of
// them at a time: one by one they would not fill the lanes.
template <typename T>
void SumRows(const T* tile, int64_t rows, int64_t columns, T* __restrict sums) {
  if (columns > kSumLanes) {
    for (int64_t i = 0; i < rows; ++i) sums[i] = Sum(tile + i * columns, columns);
    return;
  }
  for (int64_t i = 0; i < rows; ++i) sums[i] = 0;
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) sums[i] += tile[i * columns + j];
  }
}

// Adds up `count` >= 1 rows of `columns` values, `pitch` apart, into the first; the others are used
// as scratch. Neighbours are added, then neighbouring sums, and so on.
template <typename T>
void AddPairwise(int64_t count, int64_t pitch, int64_t columns, T* rows) {
  for (int64_t step = 1; step < count; step *= 2) {
    for (int64_t i = 0; i + step < count; i += 2 * step) {
      T* into = rows + i * pitch;
      const T* from = into + step * pitch;
      for (int64_t j = 0; j < columns; ++j) into[j] += from[j];
    }
  }
}

// sums[j] = sum of column j of a rows x columns tile, rows >= 1, which is used as scratch.
template <typename T>
void SumColumns(T* tile, int64_t rows, int64_t columns, T* sums) {
  AddPairwise(rows, columns, columns, tile);
  for (int64_t j = 0; j < columns; ++j) sums[j] = tile[j];
}

}  // namespace opserve::kernels
