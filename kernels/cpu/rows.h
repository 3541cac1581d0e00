// Kernels that need sums over rows before they can compute the rows' elements.
//
// All operands are seen as matrices of the same number of rows and columns; which axes form the
// columns, those that are summed over, is the operator's choice. Rows are walked in passes: some
// that sum, and one that computes elements. A formula is a class with
//   static constexpr int kPasses;
//   static constexpr uint32_t Uses(int pass);  // bits of the inputs that a pass reads
//   Begin(row, parameters), Reduce(pass, inputs, count, parameters, row),
//   EndPass(pass, num_columns, parameters, row), Compute(inputs, count, parameters, row, outputs)
// all static and templates of the type C that is computed in. Pass kPasses is that of Compute. A
// formula of a plan with column_outputs has besides
//   ComputeAndAdd(inputs, count, parameters, row, outputs, sums)
// which does as Compute and adds the row's terms to each column's sums, so that the inputs are read
// once for both.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cpu/elements.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/plan.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {

struct RowOperand {
  Dtype dtype = Dtype::kFloat;
  int address = -1;   // -1: left out
  double absent = 0;  // what its elements are then
  AxisGroup rows;
  AxisGroup columns;
};

struct RowParameters {
  double eps = 0;
  double scale = 1;
  bool flag = false;
};

struct RowsPlan {
  int64_t num_rows = 1;
  int64_t num_columns = 1;
  int64_t num_elements = 0;
  RowParameters parameters;
  std::vector<RowOperand> inputs;       // at most kMaxRowInputs
  std::vector<RowOperand> row_inputs;   // one number for each row: only `rows` counts
  std::vector<RowOperand> outputs;      // at most kMaxRowOutputs
  std::vector<RowOperand> row_outputs;  // as row_inputs
  // One number for each column, the sums over all rows: none, or kColumnOutputs. Only `columns`
  // counts.
  std::vector<RowOperand> column_outputs;
  TensorRef total;  // if given, parameters.scale is the sum of its elements
};

inline constexpr int kMaxRowInputs = 6;
inline constexpr int kMaxRowOutputs = 2;
inline constexpr int kMaxRowNumbers = 6;
inline constexpr int kColumnOutputs = 2;

// What is kept of one row.
template <typename C>
struct Row {
  std::array<C, kMaxRowNumbers> inputs;
  std::array<C, kMaxRowNumbers> outputs;
  std::array<C, 3> numbers;    // what the formula derives
  std::array<double, 3> sums;  // of blocks, each of which is summed as C; 0 at the beginning
};

// Whether `count` positions of a group of axes from `first` on are one stride apart.
inline bool AreInOneRun(const AxisGroup& axes, int64_t first, int64_t count) {
  return axes.rank == 1 || first % axes.inner_extent() + count <= axes.inner_extent();
}
// Whether the tile's rows are runs of numbers of type C in memory, one stride apart.
template <typename C>
bool AreRuns(const RowOperand& operand, int64_t row, int64_t num_rows, int64_t column,
             int64_t count) {
  return operand.dtype == kDtypeOf<C> && operand.columns.inner_stride() == 1 &&
         AreInOneRun(operand.columns, column, count) && AreInOneRun(operand.rows, row, num_rows);
}
// Elements from the operand's first one to the one at that place.
inline int64_t OffsetOf(const RowOperand& operand, int64_t row, int64_t column) {
  return AxisCursor(operand.rows, row).offset() + AxisCursor(operand.columns, column).offset();
}

// Reads a tile of `num_rows` x `count` elements from (`row`, `column`) on, of any dtype and
// strides, as numbers in `buffer`, row by row; and writes one. For float and double; they are
// functions of their own as they are the same for all formulas, and large.
template <typename C>
void LoadTile(const RowOperand& operand, const void* address, int64_t row, int64_t num_rows,
              int64_t column, int64_t count, C* buffer);
template <typename C>
void StoreTile(const RowOperand& operand, const C* buffer, int64_t row, int64_t num_rows,
               int64_t column, int64_t count, void* address);
// The number that an operand has for a row; `absent` if it is left out. And the reverse.
template <typename C>
C LoadOfRow(const RowOperand& operand, const void* const* addresses, int64_t row);
template <typename C>
void StoreOfRow(C number, const RowOperand& operand, void* const* addresses, int64_t row);
// Writes the number that an operand has for a column.
template <typename C>
void StoreOfColumn(C number, const RowOperand& operand, void* const* addresses, int64_t column);
// The sum of a tensor's elements.
double TotalOf(const TensorRef& tensor, const void* const* addresses);

template <typename C, typename Formula>
class RowsKernel final : public Kernel {
 public:
  explicit RowsKernel(RowsPlan plan) : plan_(std::move(plan)) {
    const AxisGroup& rows = plan_.inputs[0].rows;
    const AxisGroup& columns = plan_.inputs[0].columns;
    const bool is_transposed =
        rows.inner_stride() > 0 && rows.inner_stride() < columns.inner_stride();
    if (is_transposed) {
      panel_rows_ = kSide;
      tile_columns_ = kSide;
    } else if (plan_.num_columns >= kTile / 8) {
      panel_rows_ = std::max<int64_t>(1, kPanel / plan_.num_columns);
      // A tile that is a part of one run, such as an image of a channel, is taken as it lies.
      const int64_t run = columns.rank > 1 ? columns.inner_extent() : 0;
      const bool has_long_runs = run >= kTile / 8 && run <= kTile;
      tile_columns_ = has_long_runs ? run : kTile;
    } else {
      panel_rows_ = std::min(kSide, kTile / std::max<int64_t>(1, plan_.num_columns));
      tile_columns_ = plan_.num_columns;
    }
    panel_rows_ = std::clamp<int64_t>(plan_.num_rows, 1, panel_rows_);
    tile_columns_ = std::clamp<int64_t>(plan_.num_columns, 1, tile_columns_);
    num_panels_ = CeilDivide(plan_.num_rows, panel_rows_);
    panels_per_task_ = PiecesPerTask(panel_rows_ * plan_.num_columns);
    if (has_column_sums()) {
      // Each task leaves sums: not so many that they take more memory than the rows.
      const int64_t least_panels = std::max(num_panels_ / kMostPartialSums, kSide / panel_rows_);
      panels_per_task_ = std::max(panels_per_task_, least_panels);
    }
    num_tasks_ = CeilDivide(num_panels_, panels_per_task_);
  }

  size_t workspace_bytes() const override {
    if (!has_column_sums()) return 0;
    return static_cast<size_t>(num_tasks_ * kColumnOutputs * plan_.num_columns) *
           (sizeof(double) + sizeof(C));
  }
  int64_t num_elements() const override { return plan_.num_elements; }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           TaskRunner& runner) const override {
    RowParameters parameters = plan_.parameters;
    if (plan_.total.is_given()) parameters.scale = TotalOf(plan_.total, inputs);
    const int64_t num_sums =
        has_column_sums() ? kColumnOutputs * plan_.num_columns : 0;  // of a task
    auto* const totals = static_cast<double*>(workspace);
    auto* const parts = reinterpret_cast<C*>(totals + num_tasks_ * num_sums);
    RunTasks(runner, num_tasks_, [&](int64_t task) {
      Tiles tiles;
      tiles.addresses = inputs;
      tiles.parameters = parameters;
      if (has_column_sums()) {
        tiles.column_sums = {parts + task * num_sums, totals + task * num_sums, 0};
        std::fill_n(tiles.column_sums.parts, num_sums, C{0});
        std::fill_n(tiles.column_sums.totals, num_sums, 0.0);
      }
      const int64_t begin = task * panels_per_task_;
      const int64_t end = std::min(begin + panels_per_task_, num_panels_);
      for (int64_t i = begin; i < end; ++i) RunPanel(i * panel_rows_, outputs, runner, tiles);
      if (has_column_sums()) FoldColumnSums(tiles.column_sums);
    });
    if (has_column_sums()) StoreColumnSums(totals, outputs, runner);
  }

 private:
  static constexpr int64_t kTile = 4096;  // elements
  // Elements of the few rows that are taken at a time: the next pass finds them in the first-level
  // cache.
  static constexpr int64_t kPanel = kTile / 2;
  static constexpr int64_t kSide = 64;
  // Tasks that leave sums of columns, at most; and the rows that are summed up as C.
  static constexpr int64_t kMostPartialSums = 64;
  static constexpr int64_t kPartRows = 32;

  // The sums of the columns in one task: those of output k from k * num_columns on.
  struct ColumnSums {
    C* parts = nullptr;        // of the last rows
    double* totals = nullptr;  // of those before
    int64_t num_rows = 0;      // in the parts
  };

  // Tiles of the inputs: where they are, and the memory for those that are not taken as they lie.
  struct Tiles {
    const void* const* addresses;
    RowParameters parameters;
    std::array<const C*, kMaxRowInputs> first = {};
    std::array<int64_t, kMaxRowInputs> pitch = {};
    // Rows for which a buffer has the whole tile of an operand that is alike in all rows.
    std::array<int64_t, kMaxRowInputs> constant_rows = {};
    ColumnSums column_sums;
    Row<C> rows[kSide];  // of the panel
    alignas(64) C buffers[kMaxRowInputs][kTile];
    alignas(64) C results[kMaxRowOutputs][kTile];  // those that are not written to their place
  };

  bool has_column_sums() const { return !plan_.column_outputs.empty(); }

  void FoldColumnSums(ColumnSums& sums) const {
    for (int64_t i = 0; i < kColumnOutputs * plan_.num_columns; ++i) {
      sums.totals[i] += static_cast<double>(sums.parts[i]);
      sums.parts[i] = 0;
    }
    sums.num_rows = 0;
  }

  // Adds up the tasks' sums, in the order of the tasks.
  void StoreColumnSums(const double* totals, void* const* outputs, TaskRunner& runner) const {
    const int64_t num_columns = plan_.num_columns;
    const int64_t per_task = PiecesPerTask(num_tasks_ * kColumnOutputs);
    RunTasks(runner, CeilDivide(num_columns, per_task), [&](int64_t task) {
      const int64_t end = std::min((task + 1) * per_task, num_columns);
      for (size_t k = 0; k < kColumnOutputs; ++k) {
        const RowOperand& operand = plan_.column_outputs[k];
        if (operand.address < 0) continue;
        for (int64_t i = task * per_task; i < end; ++i) {
          double total = 0;
          for (int64_t j = 0; j < num_tasks_; ++j) {
            total += totals[(j * kColumnOutputs + static_cast<int64_t>(k)) * num_columns + i];
          }
          StoreOfColumn(static_cast<C>(total), operand, outputs, i);
        }
      }
    });
  }

  void RunPanel(int64_t row, void* const* outputs, const TaskRunner& runner, Tiles& tiles) const {
    const int64_t num_rows = std::min(panel_rows_, plan_.num_rows - row);
    Row<C>* const rows = tiles.rows;
    for (int64_t i = 0; i < num_rows; ++i) rows[i].sums = {};
    for (size_t k = 0; k < plan_.row_inputs.size(); ++k) {
      const RowOperand& operand = plan_.row_inputs[k];
      for (int64_t i = 0; i < num_rows; ++i) {
        rows[i].inputs[k] = LoadOfRow<C>(operand, tiles.addresses, row + i);
      }
    }
    for (int64_t i = 0; i < num_rows; ++i) Formula::template Begin<C>(rows[i], tiles.parameters);

    // A panel of one tile is read once.
    const bool is_single = tile_columns_ >= plan_.num_columns;
    uint32_t loaded = 0;
    for (int pass = 0; pass <= Formula::kPasses; ++pass) {
      const bool computes = pass == Formula::kPasses;
      if (computes && plan_.outputs.empty()) break;
      for (int64_t column = 0; column < plan_.num_columns; column += tile_columns_) {
        if (runner.MustStop()) return;
        const int64_t count = std::min(tile_columns_, plan_.num_columns - column);
        const uint32_t wanted = Formula::Uses(pass);
        for (size_t k = 0; k < plan_.inputs.size(); ++k) {
          if ((wanted & ~loaded) >> k & 1) Load(k, row, num_rows, column, count, tiles);
        }
        if (is_single) loaded |= wanted;
        if (computes) {
          ComputeTile(row, num_rows, column, count, tiles, outputs);
        } else {
          for (int64_t i = 0; i < num_rows; ++i) {
            const std::array<const C*, kMaxRowInputs> in = RowOf(tiles, i);
            Formula::template Reduce<C>(pass, in.data(), count, tiles.parameters, rows[i]);
          }
        }
      }
      if (computes) break;
      for (int64_t i = 0; i < num_rows; ++i) {
        Formula::template EndPass<C>(pass, plan_.num_columns, tiles.parameters, rows[i]);
      }
    }

    if (has_column_sums()) {
      tiles.column_sums.num_rows += num_rows;
      if (tiles.column_sums.num_rows >= kPartRows) FoldColumnSums(tiles.column_sums);
    }

    for (size_t k = 0; k < plan_.row_outputs.size(); ++k) {
      const RowOperand& operand = plan_.row_outputs[k];
      if (operand.address < 0) continue;
      for (int64_t i = 0; i < num_rows; ++i) {
        StoreOfRow(rows[i].outputs[k], operand, outputs, row + i);
      }
    }
  }

  static std::array<const C*, kMaxRowInputs> RowOf(const Tiles& tiles, int64_t i) {
    std::array<const C*, kMaxRowInputs> in;
    for (int k = 0; k < kMaxRowInputs; ++k) in[k] = tiles.first[k] + i * tiles.pitch[k];
    return in;
  }

  void Load(size_t k, int64_t row, int64_t num_rows, int64_t column, int64_t count,
            Tiles& tiles) const {
    const RowOperand& operand = plan_.inputs[k];
    C* buffer = tiles.buffers[k];
    if (operand.address < 0) {
      if (tiles.constant_rows[k] == 0) {
        std::fill_n(buffer, kTile, static_cast<C>(operand.absent));
        tiles.constant_rows[k] = kSide;
      }
      tiles.first[k] = buffer;
      tiles.pitch[k] = 0;
      return;
    }
    const void* address = tiles.addresses[operand.address];
    if (AreRuns<C>(operand, row, num_rows, column, count)) {
      tiles.first[k] = static_cast<const C*>(address) + OffsetOf(operand, row, column);
      tiles.pitch[k] = operand.rows.inner_stride();
      return;
    }
    tiles.first[k] = buffer;
    tiles.pitch[k] = count;
    const bool is_constant = operand.rows.is_broadcast();
    if (is_constant) tiles.pitch[k] = 0;
    if (is_constant && tile_columns_ >= plan_.num_columns && tiles.constant_rows[k] > 0) return;
    LoadTile(operand, address, row, is_constant ? 1 : num_rows, column, count, buffer);
    if (is_constant) tiles.constant_rows[k] = 1;
  }

  void ComputeTile(int64_t row, int64_t num_rows, int64_t column, int64_t count, Tiles& tiles,
                   void* const* outputs) const {
    C* first[kMaxRowOutputs] = {tiles.results[0], tiles.results[1]};
    int64_t pitch[kMaxRowOutputs] = {count, count};
    const size_t num_outputs = plan_.outputs.size();
    bool is_direct[kMaxRowOutputs] = {};
    for (size_t k = 0; k < num_outputs; ++k) {
      const RowOperand& operand = plan_.outputs[k];
      if (operand.address < 0 || !AreRuns<C>(operand, row, num_rows, column, count)) continue;
      first[k] = static_cast<C*>(outputs[operand.address]) + OffsetOf(operand, row, column);
      pitch[k] = operand.rows.inner_stride();
      is_direct[k] = true;
    }
    for (int64_t i = 0; i < num_rows; ++i) {
      const std::array<const C*, kMaxRowInputs> in = RowOf(tiles, i);
      C* const out[] = {first[0] + i * pitch[0], first[1] + i * pitch[1]};
      if constexpr (requires { &Formula::template ComputeAndAdd<C>; }) {
        if (has_column_sums()) {
          C* const parts = tiles.column_sums.parts + column;
          C* const sums[] = {parts, parts + plan_.num_columns};
          Formula::template ComputeAndAdd<C>(in.data(), count, tiles.parameters, tiles.rows[i], out,
                                             sums);
          continue;
        }
      }
      Formula::template Compute<C>(in.data(), count, tiles.parameters, tiles.rows[i], out);
    }
    for (size_t k = 0; k < num_outputs; ++k) {
      const RowOperand& operand = plan_.outputs[k];
      if (operand.address < 0 || is_direct[k]) continue;
      StoreTile(operand, tiles.results[k], row, num_rows, column, count, outputs[operand.address]);
    }
  }

  const RowsPlan plan_;
  int64_t panel_rows_;
  int64_t tile_columns_;
  int64_t num_panels_;
  int64_t panels_per_task_;
  int64_t num_tasks_;
};

// The kernel of a plan, in float64 if an input is.
template <typename Formula>
std::unique_ptr<Kernel> MakeRowsKernel(RowsPlan plan) {
  bool is_double = false;
  for (const RowOperand& operand : plan.inputs) {
    is_double |= operand.address >= 0 && operand.dtype == Dtype::kDouble;
  }
  if (is_double) return std::make_unique<RowsKernel<double, Formula>>(std::move(plan));
  return std::make_unique<RowsKernel<float, Formula>>(std::move(plan));
}

// The tensor as a matrix whose rows are the axes [0, axis) and whose columns the others.
inline RowOperand SplitAt(const TensorRef& tensor, int axis, double absent = 0) {
  if (!tensor.is_given()) return {Dtype::kFloat, -1, absent, {}, {}};
  return {tensor.layout.dtype, tensor.address, absent, GroupOf(tensor.layout, 0, axis),
          GroupOf(tensor.layout, axis, tensor.layout.rank)};
}
// The tensor as a matrix whose columns are one axis.
inline RowOperand SplitOff(const TensorRef& tensor, int axis, double absent = 0) {
  if (!tensor.is_given()) return {Dtype::kFloat, -1, absent, {}, {}};
  return {tensor.layout.dtype, tensor.address, absent, GroupOf(WithoutAxis(tensor.layout, axis)),
          GroupOf(tensor.layout, axis, std::min(axis + 1, tensor.layout.rank))};
}
// Rows and columns exchanged.
inline RowOperand Transposed(RowOperand operand) {
  std::swap(operand.rows, operand.columns);
  return operand;
}

}  // namespace opserve::kernels
