#include "kernels/cpu/iteration.h"

#include <algorithm>
#include <utility>

namespace opserve::kernels {
namespace {

// Side of their tasks, in tiles: 1 KiB of each page is used while the processor knows its address.
constexpr int64_t kSquareTask = 8;

bool CanMerge(const Axis& outer, const Axis& inner, size_t num_operands) {
  for (size_t i = 0; i < num_operands; ++i) {
    if (outer.strides[i] != inner.strides[i] * inner.extent) return false;
  }
  return true;
}

// Merges neighbours that all operands walk as one axis.
void MergeAxes(size_t num_operands, std::vector<Axis>& axes) {
  size_t last = 0;
  for (size_t i = 1; i < axes.size(); ++i) {
    if (CanMerge(axes[last], axes[i], num_operands)) {
      axes[last].extent *= axes[i].extent;
      axes[last].strides = axes[i].strides;
    } else {
      axes[++last] = axes[i];
    }
  }
  if (!axes.empty()) axes.resize(last + 1);
}

AxisGroup MakeGroup(const std::vector<Axis>& axes, size_t operand) {
  AxisGroup group;
  if (axes.empty()) return group;
  int last = 0;
  group.extents[0] = axes[0].extent;
  group.strides[0] = axes[0].strides[operand];
  for (size_t i = 1; i < axes.size(); ++i) {
    const int64_t extent = axes[i].extent;
    const int64_t stride = axes[i].strides[operand];
    if (group.strides[last] == stride * extent) {
      group.extents[last] *= extent;
    } else {
      group.extents[++last] = extent;
    }
    group.strides[last] = stride;
  }
  group.rank = last + 1;
  return group;
}

int64_t NumElements(const std::vector<Axis>& axes) {
  int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.extent;
  return count;
}

// Makes the last row axis the one along which an operand that strides along the columns lies
// closest together, so that square tiles read whole cache lines of it. False if there is none.
bool PairTransposedOperand(size_t num_operands, std::vector<Axis>& rows,
                           const std::vector<Axis>& columns) {
  if (rows.empty() || columns.empty()) return false;
  for (size_t i = 0; i < num_operands; ++i) {
    const int64_t column_stride = columns.back().strides[i];
    const auto distance = [i](const Axis& axis) {
      return axis.strides[i] == 0 ? INT64_MAX : axis.strides[i];
    };
    const auto closest =
        std::min_element(rows.begin(), rows.end(),
                         [&](const Axis& a, const Axis& b) { return distance(a) < distance(b); });
    if (distance(*closest) < column_stride) {
      std::rotate(closest, closest + 1, rows.end());
      return true;
    }
  }
  return false;
}

// Whether blocks of transposed inputs let the other operands be walked along their rows. Not where
// an output is transposed, too: it would be written in single elements.
bool GainsFromBlocks(size_t num_inputs, size_t num_operands, const Matrix& matrix) {
  const std::span<const Operand> operands(matrix.operands.data(), num_operands);
  const std::span<const Operand> inputs = operands.first(num_inputs);
  const std::span<const Operand> outputs = operands.subspan(num_inputs);
  return std::any_of(inputs.begin(), inputs.end(), IsTransposed) &&
         std::none_of(outputs.begin(), outputs.end(), IsTransposed);
}

// Has transposed inputs read in blocks of `block_rows` x `block_columns` elements at most, and the
// others in tiles of up to `widest` columns.
void ReadInBlocks(size_t num_inputs, int64_t block_rows, int64_t block_columns, int64_t widest,
                  Matrix& matrix) {
  matrix.tile_columns = std::clamp<int64_t>(matrix.num_columns, 1, widest);
  // A tile of whole rows may be the tensors' own memory, as one row always may.
  matrix.tile_rows =
      matrix.num_columns < kPaddedColumns
          ? std::clamp<int64_t>(matrix.num_rows, 1, kTileElements / matrix.tile_columns)
          : 1;
  matrix.task_column_tiles = CeilDivide(block_columns, matrix.tile_columns);
  matrix.task_row_tiles = std::max<int64_t>(1, block_rows / matrix.tile_rows);
  for (Operand& input : std::span(matrix.operands).first(num_inputs)) {
    if (!IsTransposed(input)) continue;
    input.block_rows = matrix.task_row_tiles * matrix.tile_rows;
    input.block_columns = block_columns;
  }
}

}  // namespace

std::vector<Axis> BroadcastAxes(std::span<const Layout> operands) {
  int rank = 0;
  for (const Layout& layout : operands) rank = std::max(rank, layout.rank);
  std::vector<Axis> axes(rank);
  for (size_t i = 0; i < operands.size(); ++i) {
    const Layout& layout = operands[i];
    for (int d = 0; d < layout.rank; ++d) {
      if (layout.shape[d] == 1) continue;
      Axis& axis = axes[d + rank - layout.rank];
      axis.extent = layout.shape[d];
      axis.strides[i] = layout.strides[d];
    }
  }
  return axes;
}

void SortAxes(std::span<const Layout> operands, std::vector<Axis>& axes) {
  std::erase_if(axes, [](const Axis& axis) { return axis.extent == 1; });
  const auto moved_bytes = [&](const Axis& axis) {
    int64_t bytes = 0;
    for (size_t i = 0; i < operands.size(); ++i) {
      bytes += axis.strides[i] * ElementBytes(operands[i].dtype);
    }
    return bytes;
  };
  // An insertion sort: stable, and there are at most kMaxRank axes.
  for (size_t i = 1; i < axes.size(); ++i) {
    for (size_t j = i; j > 0 && moved_bytes(axes[j - 1]) < moved_bytes(axes[j]); --j) {
      std::swap(axes[j - 1], axes[j]);
    }
  }
}

Tile Matrix::TileAt(int64_t row_tile, int64_t column_tile) const {
  Tile tile;
  tile.row = row_tile * tile_rows;
  tile.num_rows = std::min(tile_rows, num_rows - tile.row);
  tile.column = column_tile * tile_columns;
  tile.num_columns = std::min(tile_columns, num_columns - tile.column);
  return tile;
}

Matrix MakeMatrix(std::span<const Layout> operands, std::vector<Axis> rows,
                  const std::vector<Axis>& columns) {
  const bool is_transposed = PairTransposedOperand(operands.size(), rows, columns);
  Matrix matrix;
  matrix.num_rows = NumElements(rows);
  matrix.num_columns = NumElements(columns);
  int64_t run = matrix.num_columns;  // columns that lie side by side in all operands
  for (size_t i = 0; i < operands.size(); ++i) {
    matrix.operands[i] = {operands[i].dtype, MakeGroup(rows, i), MakeGroup(columns, i)};
    run = std::min(run, matrix.operands[i].columns.inner_extent());
  }
  // Tiles as wide as a run are the tensors' own memory; narrow ones would cost more than copies.
  const bool has_long_runs = run >= kTileElements / 8 && run <= kTileElements;
  const int64_t widest = has_long_runs ? run : kTileElements;
  matrix.tile_columns =
      std::clamp<int64_t>(matrix.num_columns, 1, is_transposed ? kSquareTile : widest);
  matrix.tile_rows = std::clamp<int64_t>(matrix.num_rows, 1, kTileElements / matrix.tile_columns);
  const int64_t task_tiles = kTaskElements / (matrix.tile_rows * matrix.tile_columns);
  matrix.task_column_tiles =
      std::clamp<int64_t>(matrix.num_column_tiles(), 1, is_transposed ? kSquareTask : task_tiles);
  matrix.task_row_tiles = task_tiles / matrix.task_column_tiles;
  return matrix;
}

Matrix MakeElementwiseMatrix(std::span<const Layout> operands, size_t num_inputs, bool converts) {
  std::vector<Axis> rows = BroadcastAxes(operands);
  SortAxes(operands, rows);
  MergeAxes(operands.size(), rows);
  std::vector<Axis> columns;
  if (!rows.empty()) {
    columns.push_back(rows.back());
    rows.pop_back();
  }
  bool is_direct = !converts && rows.empty() && !columns.empty();
  Matrix matrix = MakeMatrix(operands, std::move(rows), columns);
  if (GainsFromBlocks(num_inputs, operands.size(), matrix)) {
    const int64_t width = std::clamp<int64_t>(matrix.num_columns, 1, kBlockWidth);
    ReadInBlocks(num_inputs, kTaskElements / width, width, width, matrix);
  }
  for (size_t i = 0; is_direct && i < operands.size(); ++i) {
    is_direct = columns[0].strides[i] == 1 && operands[i].dtype == operands[0].dtype;
  }
  if (is_direct) {
    // Tiles are the tensors' own memory then, so that they need no place in the cache.
    matrix.tile_columns = std::clamp<int64_t>(matrix.num_columns, 1, kTaskElements);
    matrix.task_column_tiles = 1;
  }
  return matrix;
}

SumMatrix MakeSumMatrix(std::span<const Layout> operands, std::vector<Axis> axes) {
  SortAxes(operands, axes);
  std::vector<Axis> summed;
  std::vector<Axis> kept;
  for (const Axis& axis : axes) (axis.is_summed ? summed : kept).push_back(axis);
  if (!axes.empty() && axes.back().is_summed) {
    return {MakeMatrix(operands, std::move(kept), summed), /*columns_are_summed=*/true};
  }
  return {MakeMatrix(operands, std::move(summed), kept), /*columns_are_summed=*/false};
}

void ReadRowsInBlocks(size_t num_inputs, size_t num_operands, SumMatrix& sum) {
  constexpr int64_t kLineElements = 16;
  constexpr int64_t kMostRows = 4 * kLineElements;
  constexpr int64_t kMostElements = 16 * kTaskElements;
  Matrix& matrix = sum.matrix;
  if (!sum.columns_are_summed || !GainsFromBlocks(num_inputs, num_operands, matrix)) return;
  const int64_t width = std::max<int64_t>(1, matrix.num_columns);
  const int64_t most_rows = std::max(kMostRows, kTaskElements / width);
  const int64_t rows = std::min(most_rows, kMostElements / width);
  const int64_t block_rows = rows / kLineElements * kLineElements;
  if (block_rows == 0) return;
  ReadInBlocks(num_inputs, block_rows, width, kTileElements, matrix);
}

}  // namespace opserve::kernels
