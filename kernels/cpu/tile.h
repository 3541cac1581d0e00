// Tiles of operands as contiguous elements: of the dtype that all inputs share, otherwise of the
// type that the kernel computes in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/iteration.h"
#include "kernels/cpu/stream.h"
#include "kernels/cpu/transpose.h"

namespace opserve::kernels {

// Whether the tile's elements follow one another in memory, row by row.
inline bool IsContiguous(const Operand& operand, const Tile& tile) {
  const AxisGroup& columns = operand.columns;
  if (columns.inner_stride() != 1 && tile.num_columns != 1) return false;
  if (columns.rank != 1 && AxisCursor(columns, tile.column).run() < tile.num_columns) return false;
  return tile.num_rows == 1 ||
         (operand.rows.rank == 1 && operand.rows.strides[0] == tile.num_columns);
}

// Elements from the operand's first one to the first one of a contiguous tile.
inline int64_t OffsetOf(const Operand& operand, const Tile& tile) {
  return AxisCursor(operand.rows, tile.row).offset() +
         AxisCursor(operand.columns, tile.column).offset();
}

// buffer[i] = element i of a run of `count` elements `stride` apart.
template <typename Element, typename S>
void ReadRun(const Element* source, int64_t stride, int64_t count, S* __restrict buffer) {
  if (stride == 1 && count == kSquareTile) {
    ConvertBlock(source, kSquareTile, buffer);  // a few instructions without a loop
  } else if (stride == 1) {
    ConvertBlock(source, count, buffer);
  } else if (stride == 0) {
    std::fill_n(buffer, count, Converted<S>(*source));
  } else {
    for (int64_t i = 0; i < count; ++i) buffer[i] = Converted<S>(source[i * stride]);
  }
}

// The reverse.
template <typename O, typename Element>
void WriteRun(const O* __restrict buffer, int64_t stride, int64_t count, Element* destination) {
  if (stride == 1 && count == kSquareTile) {
    ConvertBlock(buffer, kSquareTile, destination);
  } else if (stride == 1) {
    ConvertBlock(buffer, count, destination);
  } else {
    for (int64_t i = 0; i < count; ++i) destination[i * stride] = Converted<Element>(buffer[i]);
  }
}

// Calls run(offset in the operand, its stride, offset in the tile, count) for runs of elements that
// together make up the tile, along its rows.
template <typename Run>
void ForEachRun(const Operand& operand, const Tile& tile, Run run) {
  if (IsContiguous(operand, tile)) {
    run(OffsetOf(operand, tile), 1, 0, tile.num_elements());
    return;
  }
  AxisCursor rows(operand.rows, tile.row);
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

// to[j * to_pitch + i] = from[i * from_pitch + j], in squares of kSide and, at the edges, of half
// as much.
template <typename T, int kSide = kSquareSide<T>>
void Transpose(const T* __restrict from, int64_t rows, int64_t columns, int64_t from_pitch,
               T* __restrict to, int64_t to_pitch) {
  if constexpr (kSide < 8) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) to[j * to_pitch + i] = from[i * from_pitch + j];
    }
  } else {
    const int64_t whole_rows = rows / kSide * kSide;
    const int64_t whole_columns = columns / kSide * kSide;
    for (int64_t i = 0; i < whole_rows; i += kSide) {
      for (int64_t j = 0; j < whole_columns; j += kSide) {
        TransposeSquare<kSide>(from + i * from_pitch + j, from_pitch, to + j * to_pitch + i,
                               to_pitch);
      }
    }
    Transpose<T, kSide / 2>(from + whole_columns, whole_rows, columns - whole_columns, from_pitch,
                            to + whole_columns * to_pitch, to_pitch);
    Transpose<T, kSide / 2>(from + whole_rows * from_pitch, rows - whole_rows, columns, from_pitch,
                            to + whole_rows, to_pitch);
  }
}

// Copies the tile, row by row, to `buffer`.
template <typename Element, typename S>
void ReadTile(const void* address, const Operand& operand, const Tile& tile, S* buffer) {
  const auto* source = static_cast<const Element*>(address);
  if (!IsTransposed(operand)) {
    ForEachRun(operand, tile, [&](int64_t from, int64_t stride, int64_t to, int64_t count) {
      ReadRun(source + from, stride, count, buffer + to);
    });
    return;
  }
  // Fetching all columns before any element is moved to its place keeps many cache misses in
  // flight.
  alignas(64) S columns[kTileElements];
  ForEachRowRun(operand, tile, [&](int64_t from, int64_t row, int64_t count) {
    for (int64_t j = 0; j < tile.num_columns; ++j) {
      ReadRun(source + from + j * operand.columns.strides[0], operand.rows.inner_stride(), count,
              columns + j * count);
    }
    Transpose(columns, tile.num_columns, count, count, buffer + row * tile.num_columns,
              tile.num_columns);
  });
}

// Has the second-level cache fetch a run of elements that is read soon.
template <typename Element>
void FetchAhead(const Element* source, int64_t stride, int64_t count) {
  if (stride != 1) return;
  constexpr int64_t kLine = 64 / sizeof(Element);
  for (int64_t i = 0; i < count; i += kLine) __builtin_prefetch(source + i, 0, 2);
}

// Elements from one row of a block to the next: rows whose length is a power of two would share few
// sets of the cache.
inline int64_t BlockPitch(const Tile& block) {
  if (block.num_columns < kPaddedColumns) return block.num_columns;
  return CeilDivide(block.num_columns, 32) * 32 + 16;
}

// Copies the block of a transposed operand, row by row, BlockPitch apart. A few columns are read
// along their rows at a time, which the processor fetches ahead.
template <typename Element, typename S>
void ReadBlock(const void* address, const Operand& operand, const Tile& block, S* to) {
  constexpr int64_t kColumns = 16;
  constexpr int64_t kRows = 64;
  const auto* source = static_cast<const Element*>(address);
  const int64_t pitch = BlockPitch(block);
  const int64_t stride = operand.columns.strides[0];
  const int64_t row_stride = operand.rows.inner_stride();
  alignas(64) S columns[kColumns * kRows];
  for (int64_t column = 0; column < block.num_columns; column += kColumns) {
    const int64_t width = std::min(kColumns, block.num_columns - column);
    const int64_t next_width = std::min(kColumns, block.num_columns - column - width);
    ForEachRowRun(operand, block, [&](int64_t from, int64_t first, int64_t count) {
      for (int64_t row = 0; row < count; row += kRows) {
        const int64_t height = std::min(kRows, count - row);
        const Element* const place = source + from + column * stride + row * row_stride;
        S* const destination = to + (first + row) * pitch + column;
        for (int64_t j = 0; j < next_width; ++j) {
          FetchAhead(place + (j + kColumns) * stride, row_stride, height);
        }
        if constexpr (std::is_same_v<Element, S>) {
          if (row_stride == 1) {
            Transpose(place, width, height, stride, destination, pitch);
            continue;
          }
        }
        for (int64_t j = 0; j < width; ++j) {
          ReadRun(place + j * stride, row_stride, height, columns + j * kRows);
        }
        Transpose(columns, width, height, kRows, destination, pitch);
      }
    });
  }
}

// The reverse of ReadTile.
template <typename Element, typename O>
void WriteTile(const O* buffer, const Operand& operand, const Tile& tile, void* address) {
  auto* destination = static_cast<Element*>(address);
  if (!IsTransposed(operand)) {
    ForEachRun(operand, tile, [&](int64_t to, int64_t stride, int64_t from, int64_t count) {
      WriteRun(buffer + from, stride, count, destination + to);
    });
    return;
  }
  alignas(64) O columns[kTileElements];
  ForEachRowRun(operand, tile, [&](int64_t to, int64_t row, int64_t count) {
    Transpose(buffer + row * tile.num_columns, count, tile.num_columns, tile.num_columns, columns,
              count);
    for (int64_t j = 0; j < tile.num_columns; ++j) {
      WriteRun(columns + j * count, operand.rows.inner_stride(), count,
               destination + to + j * operand.columns.strides[0]);
    }
  });
}

// Calls use(Element{}) with the type of `dtype`, which is T unless T is a type that kernels compute
// in: other tiles hold elements of their own dtype only.
template <typename T, typename Use>
auto VisitElement(Dtype dtype, Use use) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> ||
                std::is_same_v<T, int64_t>) {
    return VisitDtype(dtype, [&](auto element) { return use(element); });
  } else {
    return use(T{});
  }
}

// Calls make(S{}, O{}) with the types of the tiles of a kernel whose first operands are inputs and
// the last its output. S: the dtype of all inputs, or float; O: S if the output has that dtype, or
// float. With `kTakesDouble` also double, where all operands are.
template <bool kTakesDouble, typename Make>
auto VisitTileTypes(std::span<const Layout> operands, Make make) {
  const std::span<const Layout> inputs = operands.first(operands.size() - 1);
  Dtype dtype = inputs.front().dtype;
  for (const Layout& input : inputs) {
    if (input.dtype != dtype) dtype = Dtype::kFloat;
  }
  const bool is_same = operands.back().dtype == dtype;
  switch (dtype) {
    case Dtype::kFloat16:
      return is_same ? make(Half{}, Half{}) : make(Half{}, float{});
    case Dtype::kBfloat16:
      return is_same ? make(Bfloat16{}, Bfloat16{}) : make(Bfloat16{}, float{});
    case Dtype::kDouble:
      if constexpr (kTakesDouble) return make(double{}, double{});
      break;
    default:
      break;
  }
  return make(float{}, float{});
}

// Gives out the tiles of one input. Holds the last tile or block read, so belongs to one task.
template <typename S>
class TileReader {
 public:
  // `operand` outlives the reader.
  TileReader(const Operand& operand, const void* address)
      : operand_(operand),
        address_(address),
        read_(VisitElement<S>(operand.dtype, [&](auto element) {
          return operand.block_rows > 0 ? &ReadBlock<decltype(element), S>
                                        : &ReadTile<decltype(element), S>;
        })) {}

  // tile.num_elements() values, row by row: the tensor's own memory where possible, otherwise a
  // copy, made anew only if the values may differ from the last ones. Valid until the next Read.
  const S* Read(const Tile& tile) {
    if (operand_.block_rows > 0) return ReadOfBlock(tile);
    if (const S* elements = Find(tile)) return elements;
    if (!Holds(tile)) {
      read_(address_, operand_, tile, buffer_);
      held_ = tile;
    }
    return buffer_;
  }

  // The tile in the tensor's own memory; null if it does not lie there as it is read.
  const S* Find(const Tile& tile) const {
    if (operand_.block_rows > 0 || operand_.dtype != kDtypeOf<S> || !IsContiguous(operand_, tile)) {
      return nullptr;
    }
    return static_cast<const S*>(address_) + OffsetOf(operand_, tile);
  }

 private:
  bool Holds(const Tile& tile) const {
    return tile.num_columns == held_.num_columns && tile.num_rows <= held_.num_rows &&
           (tile.row == held_.row || operand_.rows.is_broadcast()) &&
           (tile.column == held_.column || operand_.columns.is_broadcast());
  }

  // A tile of several rows has all columns of the block, whose rows follow one another then.
  const S* ReadOfBlock(const Tile& tile) {
    const bool is_there = tile.column >= held_.column &&
                          tile.column + tile.num_columns <= held_.column + held_.num_columns &&
                          tile.row >= held_.row &&
                          tile.row + tile.num_rows <= held_.row + held_.num_rows;
    if (!is_there) {
      // All blocks of a task have the same columns.
      const int64_t most_rows = std::min(operand_.block_rows, CountOf(operand_.rows));
      held_ = tile;
      held_.num_rows = std::min(most_rows, CountOf(operand_.rows) - tile.row);
      held_.num_columns = std::min(operand_.block_columns, CountOf(operand_.columns) - tile.column);
      if (block_ == nullptr) block_.reset(new S[most_rows * BlockPitch(held_)]);
      read_(address_, operand_, held_, block_.get());
    }
    return block_.get() + (tile.row - held_.row) * BlockPitch(held_) + tile.column - held_.column;
  }
  static int64_t CountOf(const AxisGroup& axes) {
    int64_t count = 1;
    for (int d = 0; d < axes.rank; ++d) count *= axes.extents[d];
    return count;
  }

  const Operand& operand_;
  const void* address_;
  void (*const read_)(const void*, const Operand&, const Tile&, S*);
  Tile held_;
  std::unique_ptr<S[]> block_;
  alignas(64) S buffer_[kTileElements];
};

// Takes the tiles of the output. Belongs to one task.
template <typename O>
class TileWriter {
 public:
  // `operand` outlives the writer. `num_elements`: of the whole output.
  TileWriter(const Operand& operand, int64_t num_elements, void* address)
      : operand_(operand),
        address_(address),
        streams_(num_elements * ElementBytes(operand.dtype) >= kStreamedBytes),
        write_(VisitElement<O>(operand.dtype,
                               [](auto element) { return &WriteTile<decltype(element), O>; })) {}
  ~TileWriter() {
    if (streams_) FinishStreaming();
  }
  TileWriter(const TileWriter&) = delete;
  TileWriter& operator=(const TileWriter&) = delete;

  // Calls compute(values, streams) to put tile.num_elements() values, row by row, where `values`
  // points, and writes them to the tensor. Where possible `values` is the tensor's own memory, and
  // with `streams` they are to go past the caches.
  template <typename Compute>
  void Write(const Tile& tile, Compute compute) {
    O* values = Place(tile);
    compute(values, streams_ && values != buffer_);
    Store(tile);
  }

  // The two halves of it: where to put the tile's values, and writing them.
  O* Place(const Tile& tile) {
    if (operand_.dtype == kDtypeOf<O> && IsContiguous(operand_, tile)) {
      return static_cast<O*>(address_) + OffsetOf(operand_, tile);
    }
    return buffer_;
  }
  void Store(const Tile& tile) {
    if (Place(tile) == buffer_) write_(buffer_, operand_, tile, address_);
  }

 private:
  const Operand& operand_;
  void* const address_;
  const bool streams_;
  void (*const write_)(const O*, const Operand&, const Tile&, void*);
  alignas(64) O buffer_[kTileElements];
};

}  // namespace opserve::kernels
