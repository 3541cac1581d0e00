// Sums in an order that depends on the number of terms only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/block.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/iteration.h"

namespace opserve::kernels {

inline constexpr int kSumLanes = 32;

// accumulators[i] += values[i]. No overlap.
template <typename S>
void AddBlock(const S* __restrict values, int64_t count, Computed<S>* __restrict accumulators) {
  constexpr int kWidth = kLanesOf<S>;
  int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    const Register<S> sum = Load(accumulators + i) + Load(values + i);
    std::memcpy(accumulators + i, &sum, sizeof(sum));
  }
  for (; i < count; ++i) accumulators[i] += Widened(values[i]);
}

// accumulators += values, where `values` is rows x columns and the accumulators' rows are `pitch`
// >= columns apart. No overlap.
template <typename S>
void AddTile(const S* values, int64_t rows, int64_t columns, int64_t pitch,
             Computed<S>* accumulators) {
  if (columns == pitch) return AddBlock(values, rows * columns, accumulators);
  for (int64_t i = 0; i < rows; ++i) {
    AddBlock(values + i * columns, columns, accumulators + i * pitch);
  }
}

// The sum of `count` values: lane j of 32 takes every 32nd value from j on, then the upper half of
// the lanes is added to the lower until one is left.
template <typename S>
Computed<S> Sum(const S* values, int64_t count) {
  constexpr int kWidth = kLanesOf<S>;
  Register<S> registers[kSumLanes / kWidth] = {};
  int64_t i = 0;
  for (; i + kSumLanes <= count; i += kSumLanes) {
    for (int j = 0; j < kSumLanes / kWidth; ++j) registers[j] += Load(values + i + j * kWidth);
  }
  Computed<S> lanes[kSumLanes];
  static_assert(sizeof(lanes) == sizeof(registers));
  std::memcpy(lanes, registers, sizeof(lanes));
  for (int j = 0; i + j < count; ++j) lanes[j] += Widened(values[i + j]);
  for (int width = kSumLanes / 2; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) lanes[j] += lanes[j + width];
  }
  return lanes[0];
}

// sums[i] += sum of row i of a rows x columns tile. Short rows are summed from left to right, all
// of them at a time: one by one they would not fill the lanes.
template <typename S>
void AddRowSums(const S* tile, int64_t rows, int64_t columns, Computed<S>* __restrict sums) {
  if (columns > kSumLanes) {
    for (int64_t i = 0; i < rows; ++i) sums[i] += Sum(tile + i * columns, columns);
    return;
  }
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) sums[i] += Widened(tile[i * columns + j]);
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

// The sums of a panel: of the tiles that lie side by side along the summed direction.
template <typename T>
class PanelSums {
 public:
  // `first` is the panel's first tile and no smaller than its others. The sums, one for each row or
  // each column of it, go to `sums`.
  PanelSums(bool columns_are_summed, const Tile& first, int64_t num_tiles, T* sums)
      : columns_are_summed_(columns_are_summed),
        is_summed_at_once_(columns_are_summed && (first.num_rows == 1 || num_tiles == 1)),
        first_(first),
        sums_(sums) {
    if (columns_are_summed) {
      std::fill_n(sums, first.num_rows, T{0});
    }
    if (!is_summed_at_once_) {
      std::fill_n(accumulators_, std::max<int64_t>(first.num_rows, 1) * first.num_columns, T{0});
    }
  }

  // Adds the tile's elements. All tiles are added, in order.
  template <typename S>
  void Add(const S* values, const Tile& tile) {
    if (is_summed_at_once_) {
      AddRowSums(values, tile.num_rows, tile.num_columns, sums_);
    } else {
      AddTile(values, tile.num_rows, tile.num_columns, first_.num_columns, accumulators_);
    }
  }

  void Finish() {
    if (is_summed_at_once_) return;
    if (columns_are_summed_) {
      AddRowSums(accumulators_, first_.num_rows, first_.num_columns, sums_);
    } else {
      SumColumns(accumulators_, first_.num_rows, first_.num_columns, sums_);
    }
  }

 private:
  const bool columns_are_summed_;
  const bool is_summed_at_once_;  // tile by tile, without accumulators
  const Tile first_;
  T* const sums_;
  alignas(64) T accumulators_[kTileElements];
};

}  // namespace opserve::kernels
