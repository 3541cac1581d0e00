// How a kernel walks over its tensors: as matrices.
//
// Every operand is seen as a matrix of the same number of rows and columns, both of them groups of
// axes of the broadcast shape, and matrices are walked tile by tile. Which axes form the rows and
// which the columns is the plan of a kernel: columns run along the axes that move least in memory,
// or along an axis to be summed. Broadcast axes have stride 0.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/kernel.h"

namespace opserve::kernels {

// Elements of the largest tile. Tiles of all operands stay in the first-level cache as floats.
inline constexpr int64_t kTileElements = 1024;

// Side of the tiles where an operand runs down the columns: 128 bytes of floats both ways.
inline constexpr int64_t kSquareTile = 32;

// Columns of the blocks that are read as a whole of operands that run down the columns: the other
// operands' rows have 2 KiB of floats side by side then.
inline constexpr int64_t kBlockWidth = 512;

// Blocks with fewer columns are not padded, so that several of their rows are one tile.
inline constexpr int64_t kPaddedColumns = 256;

// Elements of one task, the unit of work that TaskRunners share out.
inline constexpr int64_t kTaskElements = 64 * kTileElements;

inline constexpr int kMaxOperands = 10;

constexpr int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// One axis of the broadcast shape.
struct Axis {
  int64_t extent = 1;
  std::array<int64_t, kMaxOperands> strides = {};  // in elements, per operand; 0 where broadcast
  bool is_summed = false;
};

// The axes of the shape that all operands broadcast to, outermost first. Axis i of the result is
// axis i - (result size - rank) of an operand.
std::vector<Axis> BroadcastAxes(std::span<const Layout> operands);

// Drops axes of extent 1 and orders the others by the bytes that a step along them moves over in
// all operands together, the largest first.
void SortAxes(std::span<const Layout> operands, std::vector<Axis>& axes);

// The way of one operand through a group of axes, neighbours merged where possible. rank >= 1.
struct AxisGroup {
  int rank = 1;
  std::array<int64_t, kMaxRank> extents = {1};
  std::array<int64_t, kMaxRank> strides = {0};

  int64_t inner_extent() const { return extents[rank - 1]; }
  int64_t inner_stride() const { return strides[rank - 1]; }
  bool is_broadcast() const { return rank == 1 && strides[0] == 0; }
};

// A position in an AxisGroup.
class AxisCursor {
 public:
  // At linear position `index`, 0 <= index <= the product of the extents.
  AxisCursor(const AxisGroup& group, int64_t index) : group_(group) {
    for (int d = group.rank - 1; d > 0; --d) {
      position_[d] = index % group.extents[d];
      offset_ += position_[d] * group.strides[d];
      index /= group.extents[d];
    }
    position_[0] = index;
    offset_ += index * group.strides[0];
  }

  // Elements from the group's first one to the current one.
  int64_t offset() const { return offset_; }
  // Positions left on the innermost axis, this one included; the next ones are inner_stride apart.
  int64_t run() const { return group_.inner_extent() - position_[group_.rank - 1]; }
  // Moves on by `count` <= run() positions.
  void Advance(int64_t count) {
    int d = group_.rank - 1;
    position_[d] += count;
    offset_ += count * group_.strides[d];
    for (; d > 0 && position_[d] == group_.extents[d]; --d) {
      offset_ += group_.strides[d - 1] - position_[d] * group_.strides[d];
      position_[d] = 0;
      ++position_[d - 1];
    }
  }

 private:
  const AxisGroup& group_;
  std::array<int64_t, kMaxRank> position_;
  int64_t offset_ = 0;
};

struct Operand {
  Dtype dtype = Dtype::kFloat;
  AxisGroup rows;
  AxisGroup columns;
  // Of an input that is read in blocks: their rows, those of a task, and columns. 0: tile by tile.
  int64_t block_rows = 0;
  int64_t block_columns = 0;
};

// Part of a matrix: `num_rows` rows from `row` on, of each `num_columns` columns from `column` on.
struct Tile {
  int64_t row = 0;
  int64_t num_rows = 0;
  int64_t column = 0;
  int64_t num_columns = 0;

  int64_t num_elements() const { return num_rows * num_columns; }
};

// Whether the operand lies closer together down the columns than along the rows.
inline bool IsTransposed(const Operand& operand) {
  const int64_t row_stride = operand.rows.inner_stride();
  return operand.columns.rank == 1 && row_stride > 0 && row_stride < operand.columns.strides[0];
}

struct Matrix {
  int64_t num_rows = 1;
  int64_t num_columns = 1;
  // Shape of the tiles, at most kTileElements elements and at least 1 x 1; those at the matrix's
  // edges are smaller. Several rows wide if rows are short, or if some operand runs down the
  // columns.
  int64_t tile_rows = 1;
  int64_t tile_columns = 1;
  // Tiles of one task of elementwise work: neighbours that share cache lines and pages.
  int64_t task_row_tiles = 1;
  int64_t task_column_tiles = 1;
  std::array<Operand, kMaxOperands> operands;

  // The tile at tile position (row_tile, column_tile).
  Tile TileAt(int64_t row_tile, int64_t column_tile) const;
  int64_t num_elements() const { return num_rows * num_columns; }
  int64_t num_row_tiles() const { return CeilDivide(num_rows, tile_rows); }
  int64_t num_column_tiles() const { return CeilDivide(num_columns, tile_columns); }
};

// The matrix with these axes as rows and columns, each outermost first.
Matrix MakeMatrix(std::span<const Layout> operands, std::vector<Axis> rows,
                  const std::vector<Axis>& columns);

// For work without sums: any axis may be row or column. The first `num_inputs` operands are read,
// the others written. `converts`: tiles are always converted copies, so that none is larger than
// kTileElements.
Matrix MakeElementwiseMatrix(std::span<const Layout> operands, size_t num_inputs,
                             bool converts = false);

// For sums over the axes that are marked so in `axes`. These become the columns if one of them
// moves least in memory, otherwise the rows.
struct SumMatrix {
  Matrix matrix;
  bool columns_are_summed = false;
};
SumMatrix MakeSumMatrix(std::span<const Layout> operands, std::vector<Axis> axes);

// For kernels that read rows twice, once for their sums: has transposed inputs read in blocks of
// whole rows, so that they are transposed once. Not where so few rows fit a block that only parts
// of cache lines would be read.
void ReadRowsInBlocks(size_t num_inputs, size_t num_operands, SumMatrix& sum);

}  // namespace opserve::kernels
