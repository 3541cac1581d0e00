// Tiles of operands as contiguous values of the type that a kernel computes in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/iteration.h"
#include "kernels/cpu/stream.h"

namespace opserve::kernels {

// Whether the tile's elements follow one another in memory, row by row.
inline bool IsContiguous(const Operand& operand, const Tile& tile) {
  if (operand.columns.rank != 1 || (operand.columns.strides[0] != 1 && tile.num_columns != 1)) {
    return false;
  }
  return tile.num_rows == 1 ||
         (operand.rows.rank == 1 && operand.rows.strides[0] == tile.num_columns);
}

// Whether the operand lies closer together down the columns than along the rows.
inline bool IsTransposed(const Operand& operand) {
  const int64_t row_stride = operand.rows.inner_stride();
  return operand.columns.rank == 1 && row_stride > 0 && row_stride < operand.columns.strides[0];
}

// buffer[i] = element i of a run of `count` elements `stride` apart.
template <typename Element, typename T>
void ReadRun(const Element* source, int64_t stride, int64_t count, T* __restrict buffer) {
  if (stride == 1 && count == kSquareTile) {
    WidenBlock(source, kSquareTile, buffer);  // a few instructions without a loop
  } else if (stride == 1) {
    WidenBlock(source, count, buffer);
  } else if (stride == 0) {
    std::fill_n(buffer, count, static_cast<T>(Widened(*source)));
  } else {
    for (int64_t i = 0; i < count; ++i) buffer[i] = static_cast<T>(Widened(source[i * stride]));
  }
}

// The reverse, rounding each value once.
template <bool kStreams, typename T, typename Element>
void WriteRun(const T* __restrict buffer, int64_t stride, int64_t count, Element* destination) {
  if constexpr (kStreams && std::is_same_v<T, Element>) {
    if (stride == 1) return StreamBlock(buffer, count, destination);
  }
  if (kStreams && stride == 1) {
    alignas(64) Element narrowed[kTileElements];
    NarrowBlock(buffer, count, narrowed);
    StreamBlock(narrowed, count, destination);
  } else if (stride == 1 && count == kSquareTile) {
    NarrowBlock(buffer, kSquareTile, destination);
  } else if (stride == 1) {
    NarrowBlock(buffer, count, destination);
  } else {
    for (int64_t i = 0; i < count; ++i) NarrowBlock(buffer + i, 1, destination + i * stride);
  }
}

// Calls run(offset in the operand, its stride, offset in the tile, count) for runs of elements that
// together make up the tile, along its rows.
template <typename Run>
void ForEachRun(const Operand& operand, const Tile& tile, Run run) {
  AxisCursor rows(operand.rows, tile.row);
  if (IsContiguous(operand, tile)) {
    run(rows.offset() + tile.column * operand.columns.strides[0], 1, 0, tile.num_elements());
    return;
  }
  for (int64_t i = 0; i < tile.num_rows; ++i, rows.Advance(1)) {
    if (operand.columns.rank == 1) {
      run(rows.offset() + tile.column * operand.columns.strides[0], operand.columns.strides[0],
          i * tile.num_columns, tile.num_columns);
      continue;
    }
    AxisCursor columns(operand.columns, tile.column);
    for (int64_t j = 0; j < tile.num_columns;) {
      const int64_t count = std::min(columns.run(), tile.num_columns - j);
      run(rows.offset() + columns.offset(), operand.columns.inner_stride(),
          i * tile.num_columns + j, count);
      columns.Advance(count);
      j += count;
    }
  }
}

// Calls run(offset in the operand, first row in the tile, count) for runs of rows of a transposed
// operand that together make up the tile. Rows are rows.inner_stride() apart in the operand.
template <typename Run>
void ForEachRowRun(const Operand& operand, const Tile& tile, Run run) {
  AxisCursor rows(operand.rows, tile.row);
  for (int64_t i = 0; i < tile.num_rows;) {
    const int64_t count = std::min(rows.run(), tile.num_rows - i);
    run(rows.offset() + tile.column * operand.columns.strides[0], i, count);
    rows.Advance(count);
    i += count;
  }
}

// Transposes 8 x 8 elements in registers: in three rounds, row i of the result takes turns from
// rows i and i + 4 of the round before.
template <typename T>
void TransposeSquare(const T* from, int64_t from_pitch, T* to, int64_t to_pitch) {
  typedef T Row __attribute__((vector_size(8 * sizeof(T)), aligned(alignof(T))));
  Row a[8];
  Row b[8];
  for (int i = 0; i < 8; ++i) a[i] = *reinterpret_cast<const Row*>(from + i * from_pitch);
  const auto interleave = [](const Row* in, Row* out) {
    for (int i = 0; i < 4; ++i) {
      out[2 * i] = __builtin_shufflevector(in[i], in[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
      out[2 * i + 1] = __builtin_shufflevector(in[i], in[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
  };
  interleave(a, b);
  interleave(b, a);
  interleave(a, b);
  for (int i = 0; i < 8; ++i) *reinterpret_cast<Row*>(to + i * to_pitch) = b[i];
}

// to[j * rows + i] = from[i * columns + j]
template <typename T>
void Transpose(const T* __restrict from, int64_t rows, int64_t columns, T* __restrict to) {
  constexpr int kSide = 8;
  int64_t i = 0;
  for (; i + kSide <= rows; i += kSide) {
    int64_t j = 0;
    for (; j + kSide <= columns; j += kSide) {
      TransposeSquare(from + i * columns + j, columns, to + j * rows + i, rows);
    }
    for (; j < columns; ++j) {
      for (int64_t k = i; k < i + kSide; ++k) to[j * rows + k] = from[k * columns + j];
    }
  }
  for (; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
  }
}

// Copies the tile, widened and row by row, to `buffer`.
template <typename Element, typename T>
void ReadTile(const void* address, const Operand& operand, const Tile& tile, T* buffer) {
  const auto* source = static_cast<const Element*>(address);
  if (!IsTransposed(operand)) {
    ForEachRun(operand, tile, [&](int64_t from, int64_t stride, int64_t to, int64_t count) {
      ReadRun(source + from, stride, count, buffer + to);
    });
    return;
  }
  // Fetching all columns before any element is moved to its place keeps many cache misses in
  // flight.
  alignas(64) T columns[kTileElements];
  ForEachRowRun(operand, tile, [&](int64_t from, int64_t row, int64_t count) {
    for (int64_t j = 0; j < tile.num_columns; ++j) {
      ReadRun(source + from + j * operand.columns.strides[0], operand.rows.inner_stride(), count,
              columns + j * count);
    }
    Transpose(columns, tile.num_columns, count, buffer + row * tile.num_columns);
  });
}

// The reverse of ReadTile, rounding each value once.
template <bool kStreams, typename Element, typename T>
void WriteTile(const T* buffer, const Operand& operand, const Tile& tile, void* address) {
  auto* destination = static_cast<Element*>(address);
  if (!IsTransposed(operand)) {
    ForEachRun(operand, tile, [&](int64_t to, int64_t stride, int64_t from, int64_t count) {
      WriteRun<kStreams>(buffer + from, stride, count, destination + to);
    });
    return;
  }
  alignas(64) T columns[kTileElements];
  ForEachRowRun(operand, tile, [&](int64_t to, int64_t row, int64_t count) {
    Transpose(buffer + row * tile.num_columns, count, tile.num_columns, columns);
    for (int64_t j = 0; j < tile.num_columns; ++j) {
      WriteRun<kStreams>(columns + j * count, operand.rows.inner_stride(), count,
                         destination + to + j * operand.columns.strides[0]);
    }
  });
}

// The dtype that T stands for.
template <typename T>
inline constexpr Dtype kDtypeOf = std::is_same_v<T, double> ? Dtype::kDouble : Dtype::kFloat;

// Gives out the tiles of one input. Holds the last tile read, so belongs to one task.
template <typename T>
class TileReader {
 public:
  // `operand` outlives the reader.
  TileReader(const Operand& operand, const void* address)
      : operand_(operand), address_(address), read_(VisitDtype(operand.dtype, [](auto element) {
          return &ReadTile<decltype(element), T>;
        })) {}

  // tile.num_elements() values, row by row: the tensor's own memory where possible, otherwise a
  // copy, made anew only if the values may differ from the last ones. Valid until the next Read.
  const T* Read(const Tile& tile) {
    if (operand_.dtype == kDtypeOf<T> && IsContiguous(operand_, tile)) {
      const AxisCursor rows(operand_.rows, tile.row);
      return static_cast<const T*>(address_) + rows.offset() +
             tile.column * operand_.columns.strides[0];
    }
    if (!Holds(tile)) {
      read_(address_, operand_, tile, buffer_);
      held_ = tile;
    }
    return buffer_;
  }

 private:
  bool Holds(const Tile& tile) const {
    return tile.num_columns == held_.num_columns && tile.num_rows <= held_.num_rows &&
           (tile.row == held_.row || operand_.rows.is_broadcast()) &&
           (tile.column == held_.column || operand_.columns.is_broadcast());
  }

  const Operand& operand_;
  const void* address_;
  void (*read_)(const void*, const Operand&, const Tile&, T*);
  Tile held_;
  alignas(64) T buffer_[kTileElements];
};

// Takes the tiles of the output. Belongs to one task.
template <typename T>
class TileWriter {
 public:
  // `operand` outlives the writer. `num_elements`: of the whole output.
  TileWriter(const Operand& operand, int64_t num_elements, void* address)
      : operand_(operand),
        address_(address),
        streams_(num_elements * ElementBytes(operand.dtype) >= kStreamedBytes),
        write_(VisitDtype(operand.dtype, [this](auto element) {
          return streams_ ? &WriteTile<true, decltype(element), T>
                          : &WriteTile<false, decltype(element), T>;
        })) {}
  ~TileWriter() {
    if (streams_) FinishStreaming();
  }
  TileWriter(const TileWriter&) = delete;
  TileWriter& operator=(const TileWriter&) = delete;

  // Calls compute(values) to put tile.num_elements() values, row by row, where `values` points,
  // which is the tensor's own memory where possible, and writes them to the tensor.
  template <typename Compute>
  void Write(const Tile& tile, Compute compute) {
    if (!streams_ && operand_.dtype == kDtypeOf<T> && IsContiguous(operand_, tile)) {
      const AxisCursor rows(operand_.rows, tile.row);
      compute(static_cast<T*>(address_) + rows.offset() +
              tile.column * operand_.columns.strides[0]);
    } else {
      compute(static_cast<T*>(buffer_));
      write_(buffer_, operand_, tile, address_);
    }
  }

 private:
  const Operand& operand_;
  void* const address_;
  const bool streams_;
  void (*const write_)(const T*, const Operand&, const Tile&, void*);
  alignas(64) T buffer_[kTileElements];
};

}  // namespace opserve::kernels
