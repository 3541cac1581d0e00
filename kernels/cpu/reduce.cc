#include "kernels/cpu/reduce.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <type_traits>

#include "kernels/cpu/formula.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/reduce_rows.h"
#include "kernels/cpu/slots.h"
#include "kernels/cpu/tasks.h"
#include "kernels/cpu/tile.h"

namespace opserve::kernels {
namespace {

// Rows up to here are combined from left to right, all of them at a time: one by one they would
// not fill the lanes.
constexpr int64_t kShortRow = 32;

struct SumOf {
  static constexpr bool kRounds = true;  // so that the order counts
  template <typename T>
  static constexpr T kNeutral = T{0};
  template <typename T>
  static T Combined(T a, T b) {
    return Plus(a, b);
  }
};

struct ProductOf {
  static constexpr bool kRounds = true;
  template <typename T>
  static constexpr T kNeutral = T{1};
  template <typename T>
  static T Combined(T a, T b) {
    return Times(a, b);
  }
};

struct GreatestOf {
  static constexpr bool kRounds = false;
  template <typename T>
  static constexpr T kNeutral = std::is_integral_v<T> ? std::numeric_limits<T>::min()
                                                      : -std::numeric_limits<T>::infinity();
  template <typename T>
  static T Combined(T a, T b) {
    return Greater(a, b);
  }
};

struct LeastOf {
  static constexpr bool kRounds = false;
  template <typename T>
  static constexpr T kNeutral = std::is_integral_v<T> ? std::numeric_limits<T>::max()
                                                      : std::numeric_limits<T>::infinity();
  template <typename T>
  static T Combined(T a, T b) {
    return Lesser(a, b);
  }
};

// into[i] = into[i] combined with values[i]. No overlap.
template <typename Op, typename T>
void CombineBlock(const T* __restrict values, int64_t count, T* __restrict into) {
  for (int64_t i = 0; i < count; ++i) into[i] = Op::Combined(into[i], values[i]);
}

// The same with the blocks of several tiles, one after the other: `into` is read and written once.
constexpr int64_t kTilesAtOnce = 4;
template <typename Op, typename T>
void CombineBlocks(const T* const* tiles, int64_t count, T* __restrict into) {
  const T *first = tiles[0], *second = tiles[1], *third = tiles[2], *fourth = tiles[3];
  for (int64_t i = 0; i < count; ++i) {
    const T two = Op::Combined(Op::Combined(into[i], first[i]), second[i]);
    into[i] = Op::Combined(Op::Combined(two, third[i]), fourth[i]);
  }
}

// Combines `count` rows of `columns` values, `pitch` apart, into the first: neighbours, then
// neighbouring results, and so on. The others are used as scratch.
template <typename Op, typename T>
void CombineRows(int64_t count, int64_t pitch, int64_t columns, T* rows) {
  for (int64_t step = 1; step < count; step *= 2) {
    for (int64_t i = 0; i + step < count; i += 2 * step) {
      CombineBlock<Op>(rows + (i + step) * pitch, columns, rows + i * pitch);
    }
  }
}

// The combination of a row.
template <typename Op, typename T>
[[gnu::flatten]] T CombineRow(const T* row, int64_t count) {
  return CombineTerms<T, 1>(
      count, Op::template kNeutral<T>, [&](auto at) { return std::array{at(row)}; },
      [](auto a, auto b) { return Op::Combined(a, b); })[0];
}

template <typename T>
std::array<T, kMaxParameters> ParametersIn(const Parameters& parameters) {
  std::array<T, kMaxParameters> values;
  for (int i = 0; i < kMaxParameters; ++i) {
    if constexpr (std::is_same_v<T, int64_t>) {
      values[i] = parameters.ints[i];
    } else {
      values[i] = static_cast<T>(parameters.reals[i]);
    }
  }
  return values;
}

// The matrix is cut into panels across, and into chunks along the reduced direction, as in
// term.cc: chunks leave a row of partial results each in the workspace, to be combined afterwards.
template <typename T, typename Op>
class ReduceKernel final : public Kernel {
 public:
  ReduceKernel(const Call& call, const ReducePlan& plan, const RowLoops& rows, size_t output,
               MapLoop<T> term, MapLoop<T> finish, const SumMatrix& sum)
      : term_(term),
        row_(RowLoopOf(rows)),
        finish_(finish),
        parameters_(ParametersIn<T>(plan.parameters)),
        finish_parameters_(ParametersIn<T>(plan.finish_parameters)),
        arguments_(plan.inputs),
        destination_(FirstAddress(call.outputs, output)),
        matrix_(WithLongPanels(sum, plan.inputs.size())),
        columns_are_reduced_(sum.columns_are_summed) {
    for (size_t argument : plan.inputs) sources_.push_back(FirstAddress(call.inputs, argument));
    num_kept_ = columns_are_reduced_ ? matrix_.num_rows : matrix_.num_columns;
    panel_ = columns_are_reduced_ ? matrix_.tile_rows : matrix_.tile_columns;
    num_tiles_ = columns_are_reduced_ ? matrix_.num_column_tiles() : matrix_.num_row_tiles();
    const int64_t tile_elements = matrix_.tile_rows * matrix_.tile_columns;
    tiles_per_chunk_ = std::clamp<int64_t>(num_tiles_, 1, kTaskElements / tile_elements);
    num_chunks_ = std::max<int64_t>(1, CeilDivide(num_tiles_, tiles_per_chunk_));
    num_units_ = CeilDivide(num_kept_, panel_) * num_chunks_;
    units_per_task_ = std::max<int64_t>(1, kTaskElements / (tiles_per_chunk_ * tile_elements));
  }

  size_t workspace_bytes() const override {
    return num_chunks_ == 1 ? 0 : static_cast<size_t>(num_chunks_ * num_kept_) * sizeof(T);
  }
  int64_t num_elements() const override { return std::max(matrix_.num_elements(), num_kept_); }
  bool ReadsInput(size_t argument) const override {
    return std::find(arguments_.begin(), arguments_.end(), argument) != arguments_.end();
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           TaskRunner& runner) const override {
    T* partial_results = static_cast<T*>(workspace);
    RunTasks(runner, CeilDivide(num_units_, units_per_task_), [&](int64_t task) {
      Readers readers;
      for (size_t i = 0; i < sources_.size(); ++i) {
        readers.Add(matrix_.operands[i], inputs[sources_[i]]);
      }
      TileWriter<T> writer(out(), /*num_elements=*/0, outputs[destination_]);
      alignas(64) T results[kTileElements];
      const int64_t begin = task * units_per_task_;
      const int64_t end = std::min(begin + units_per_task_, num_units_);
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t kept = unit / num_chunks_ * panel_;
        const int64_t chunk = unit % num_chunks_;
        if (num_chunks_ == 1) {
          ReduceUnit(kept, chunk, readers, results);
          Write(kept, results, writer);
        } else {
          ReduceUnit(kept, chunk, readers, partial_results + chunk * num_kept_ + kept);
        }
      }
    });
    if (num_chunks_ == 1) return;
    const int64_t panels_per_task = std::max<int64_t>(1, kTaskElements / (num_chunks_ * panel_));
    const int64_t kept_per_task = panels_per_task * panel_;
    RunTasks(runner, CeilDivide(num_kept_, kept_per_task), [&](int64_t task) {
      TileWriter<T> writer(out(), /*num_elements=*/0, outputs[destination_]);
      const int64_t end = std::min((task + 1) * kept_per_task, num_kept_);
      for (int64_t kept = task * kept_per_task; kept < end; kept += panel_) {
        T* results = partial_results + kept;
        CombineRows<Op>(num_chunks_, num_kept_, std::min(panel_, num_kept_ - kept), results);
        Write(kept, results, writer);
      }
    });
  }

 private:
  using Readers = Slots<TileReader<T>, kMaxMapInputs>;

  static RowLoop<T> RowLoopOf(const RowLoops& loops) {
    if constexpr (std::is_same_v<T, float>) {
      return loops.in_float;
    } else if constexpr (std::is_same_v<T, double>) {
      return loops.in_double;
    } else {
      return nullptr;
    }
  }

  // Rows that are read where they lie need no memory of a tile's size, so more of them are one.
  static Matrix WithLongPanels(const SumMatrix& sum, size_t num_inputs) {
    constexpr int64_t kPanelElements = kTaskElements / 4;
    Matrix matrix = sum.matrix;
    const bool are_whole = matrix.tile_columns == matrix.num_columns;
    const bool lie_there = std::all_of(
        matrix.operands.begin(), matrix.operands.begin() + static_cast<int64_t>(num_inputs),
        [&](const Operand& input) {
          return input.dtype == kDtypeOf<T> && input.block_rows == 0 && input.columns.rank == 1 &&
                 input.columns.strides[0] == 1 && input.rows.rank == 1 &&
                 input.rows.strides[0] == matrix.num_columns;
        });
    if (sum.columns_are_summed && are_whole && lie_there && matrix.num_columns > kShortRow) {
      const int64_t rows = std::min(kTileElements, kPanelElements / matrix.num_columns);
      matrix.tile_rows = std::max(matrix.tile_rows, std::min(rows, matrix.num_rows));
    }
    return matrix;
  }

  const Operand& out() const { return matrix_.operands[sources_.size()]; }

  // Finishes the results of the panel that begins at `kept`.
  void Write(int64_t kept, const T* results, TileWriter<T>& writer) const {
    const int64_t count = std::min(panel_, num_kept_ - kept);
    const Tile tile = columns_are_reduced_ ? Tile{kept, count, 0, 1} : Tile{0, 1, kept, count};
    T* values = writer.Place(tile);
    if (finish_ != nullptr) {
      finish_(&results, finish_parameters_.data(), count, &values);
    } else {
      std::copy_n(results, count, values);
    }
    writer.Store(tile);
  }

  // The results of one chunk of the panel that begins at `kept`.
  void ReduceUnit(int64_t kept, int64_t chunk, Readers& readers, T* results) const {
    const int64_t panel = kept / panel_;
    const int64_t num_kept = std::min(panel_, num_kept_ - kept);
    const int64_t begin = chunk * tiles_per_chunk_;
    const int64_t end = std::min(begin + tiles_per_chunk_, num_tiles_);
    if (begin == end) {
      std::fill_n(results, num_kept, Op::template kNeutral<T>);
      return;
    }
    const Tile first = TileOf(panel, begin);
    if constexpr (!Op::kRounds && std::is_same_v<T, float>) {
      if (columns_are_reduced_ && num_kept == 1) {
        // In registers, where accumulators in memory take half as long again.
        const std::span<const T> row = FindRow(panel, begin, end, readers);
        if (!row.empty()) {
          results[0] = CombineRow<Op>(row.data(), static_cast<int64_t>(row.size()));
          return;
        }
      }
    }
    alignas(64) T accumulators[kTileElements];
    alignas(64) T terms[kTileElements];
    if (columns_are_reduced_ && begin + 1 == end) {
      CombineWholeRows(first, readers, terms, results);
      return;
    }
    std::fill_n(accumulators, first.num_elements(), Op::template kNeutral<T>);
    for (int64_t i = begin; i < end; ++i) {
      const T* tiles[kTilesAtOnce];
      if (i + kTilesAtOnce <= end && FindTiles(panel, i, first, readers, tiles)) {
        CombineBlocks<Op>(tiles, first.num_elements(), accumulators);
        i += kTilesAtOnce - 1;
        continue;
      }
      const Tile tile = TileOf(panel, i);
      const T* values = TermsOf(tile, readers, terms);
      if (tile.num_columns == first.num_columns) {
        CombineBlock<Op>(values, tile.num_elements(), accumulators);
      } else {
        for (int64_t row = 0; row < tile.num_rows; ++row) {
          CombineBlock<Op>(values + row * tile.num_columns, tile.num_columns,
                           accumulators + row * first.num_columns);
        }
      }
    }
    if (columns_are_reduced_) {
      CombineColumns(accumulators, num_kept, first.num_columns, results);
    } else {
      CombineRows<Op>(first.num_rows, first.num_columns, first.num_columns, accumulators);
      std::copy_n(accumulators, num_kept, results);
    }
  }

  // Tiles of one row, if they lie in memory one behind the other; else empty.
  std::span<const T> FindRow(int64_t panel, int64_t begin, int64_t end, Readers& readers) const {
    if (term_ != nullptr) return {};
    const T* const row = readers[0].Find(TileOf(panel, begin));
    int64_t count = 0;
    for (int64_t i = begin; row != nullptr && i < end; ++i) {
      const Tile tile = TileOf(panel, i);
      if (readers[0].Find(tile) != row + count) return {};
      count += tile.num_elements();
    }
    return {row, static_cast<size_t>(count)};
  }

  // Finds the tiles from `index` on where they lie in memory; whether all do, and are as large as
  // `first`.
  bool FindTiles(int64_t panel, int64_t index, const Tile& first, Readers& readers,
                 const T** tiles) const {
    if (term_ != nullptr) return false;
    for (int64_t i = 0; i < kTilesAtOnce; ++i) {
      const Tile tile = TileOf(panel, index + i);
      tiles[i] = readers[0].Find(tile);
      if (tiles[i] == nullptr || tile.num_elements() != first.num_elements()) return false;
    }
    return true;
  }

  // A tile's terms: the elements themselves where there is no formula, otherwise in `buffer`.
  const T* TermsOf(const Tile& tile, Readers& readers, T* buffer) const {
    const T* values[kMaxMapInputs] = {};
    for (size_t k = 0; k < sources_.size(); ++k) values[k] = readers[k].Read(tile);
    if (term_ == nullptr) return values[0];
    term_(values, parameters_.data(), tile.num_elements(), &buffer);
    return buffer;
  }

  // The results of a tile of whole rows, which may be larger than `buffer`.
  void CombineWholeRows(const Tile& tile, Readers& readers, T* buffer, T* results) const {
    const T* values[kMaxMapInputs] = {};
    for (size_t k = 0; k < sources_.size(); ++k) values[k] = readers[k].Read(tile);
    const int64_t num_columns = tile.num_columns;
    if (term_ == nullptr) return CombineColumns(values[0], tile.num_rows, num_columns, results);
    if (row_ != nullptr && num_columns > kShortRow) {
      for (int64_t row = 0; row < tile.num_rows; ++row) {
        results[row] = row_(values[0] + row * num_columns, num_columns);
      }
      return;
    }
    const int64_t rows_at_once = kTileElements / num_columns;
    for (int64_t row = 0; row < tile.num_rows; row += rows_at_once) {
      const int64_t num_rows = std::min(rows_at_once, tile.num_rows - row);
      term_(values, parameters_.data(), num_rows * num_columns, &buffer);
      CombineColumns(buffer, num_rows, num_columns, results + row);
      for (size_t k = 0; k < sources_.size(); ++k) values[k] += num_rows * num_columns;
    }
  }

  // results[i] = the combination of row i.
  static void CombineColumns(const T* values, int64_t num_rows, int64_t num_columns, T* results) {
    if (num_columns > kShortRow) {
      for (int64_t row = 0; row < num_rows; ++row) {
        results[row] = CombineRow<Op>(values + row * num_columns, num_columns);
      }
      return;
    }
    for (int64_t row = 0; row < num_rows; ++row) results[row] = values[row * num_columns];
    for (int64_t column = 1; column < num_columns; ++column) {
      for (int64_t row = 0; row < num_rows; ++row) {
        results[row] = Op::Combined(results[row], values[row * num_columns + column]);
      }
    }
  }

  Tile TileOf(int64_t panel, int64_t index) const {
    return columns_are_reduced_ ? matrix_.TileAt(panel, index) : matrix_.TileAt(index, panel);
  }

  const MapLoop<T> term_;
  const RowLoop<T> row_;
  const MapLoop<T> finish_;
  const std::array<T, kMaxParameters> parameters_;
  const std::array<T, kMaxParameters> finish_parameters_;
  const std::vector<size_t> arguments_;
  std::vector<size_t> sources_;
  const size_t destination_;
  const Matrix matrix_;
  const bool columns_are_reduced_;
  int64_t num_kept_;         // results
  int64_t panel_;            // results of one unit
  int64_t num_tiles_;        // in the reduced direction
  int64_t tiles_per_chunk_;  // at least 1
  int64_t num_chunks_;       // at least 1
  int64_t num_units_;
  int64_t units_per_task_;
};

template <typename T>
std::unique_ptr<Kernel> MakeIn(const Call& call, const ReducePlan& plan, const RowLoops& rows,
                               size_t output, MapLoop<T> term, MapLoop<T> finish,
                               const SumMatrix& sum) {
  switch (plan.combine) {
    case Combine::kSum:
      return std::make_unique<ReduceKernel<T, SumOf>>(call, plan, rows, output, term, finish, sum);
    case Combine::kProduct:
      return std::make_unique<ReduceKernel<T, ProductOf>>(call, plan, rows, output, term, finish,
                                                          sum);
    case Combine::kGreatest:
      return std::make_unique<ReduceKernel<T, GreatestOf>>(call, plan, rows, output, term, finish,
                                                           sum);
    case Combine::kLeast:
      return std::make_unique<ReduceKernel<T, LeastOf>>(call, plan, rows, output, term, finish,
                                                        sum);
  }
  return nullptr;
}

std::unique_ptr<Kernel> MakeKernelOf(const Call& call, const ReducePlan& plan, const RowLoops& rows,
                                     size_t output) {
  std::vector<Layout> operands;
  int rank = 0;
  for (size_t argument : plan.inputs) {
    operands.push_back(Input(call, argument));
    rank = std::max(rank, operands.back().rank);
  }
  operands.push_back(WithReducedAxes(Output(call, output), rank, plan.axes));
  std::vector<Axis> axes = BroadcastAxes(operands);
  for (int d = 0; d < rank; ++d) axes[d].is_summed = (plan.axes >> d & 1) != 0;
  const SumMatrix sum = MakeSumMatrix(operands, std::move(axes));
  const std::span<const Layout> all = operands;
  ComputeIn compute =
      ChooseCompute(plan.arithmetic, all.first(plan.inputs.size()), all.last(1), plan.parameters);
  if (operands.back().dtype == Dtype::kDouble && compute == ComputeIn::kFloat) {
    compute = ComputeIn::kDouble;
  }
  switch (compute) {
    case ComputeIn::kFloat:
      return MakeIn(call, plan, rows, output, plan.term.in_float, plan.finish.in_float, sum);
    case ComputeIn::kDouble:
      return MakeIn(call, plan, rows, output, plan.term.in_double, plan.finish.in_double, sum);
    case ComputeIn::kInt:
      return MakeIn(call, plan, rows, output, plan.term.in_int, plan.finish.in_int, sum);
  }
  return nullptr;
}

}  // namespace

uint32_t ReducedAxes(const std::vector<int64_t>& dims, int rank) {
  if (dims.empty()) return ~0u;
  uint32_t axes = 0;
  for (int64_t dim : dims) axes |= 1u << AxisAttribute(dim, rank);
  return axes;
}

int64_t NumReduced(const Layout& input, uint32_t axes) {
  int64_t count = 1;
  for (int d = 0; d < input.rank; ++d) {
    if ((axes >> d & 1) != 0) count *= input.shape[d];
  }
  return count;
}

Layout WithReducedAxes(const Layout& out, int rank, uint32_t axes) {
  Layout layout;
  layout.dtype = out.dtype;
  layout.rank = rank;
  // The kept axes are those that it has beyond the ones of extent 1, in order.
  int num_kept = 0;
  for (int d = 0; d < rank; ++d) num_kept += (axes >> d & 1) == 0 ? 1 : 0;
  const bool has_all = out.rank == rank && num_kept != rank;
  int from = 0;
  for (int d = 0; d < rank; ++d) {
    layout.shape[d] = 1;
    if ((axes >> d & 1) != 0) {
      if (has_all) ++from;
      continue;
    }
    layout.shape[d] = out.shape[from];
    layout.strides[d] = out.strides[from];
    ++from;
  }
  return layout;
}

std::unique_ptr<Kernel> MakeReduceKernel(const Call& call, const ReducePlan& plan, size_t output) {
  return MakeKernelOf(call, plan, RowLoops{}, output);
}

std::unique_ptr<Kernel> MakeReduceKernel(const Call& call, const ReducePlan& plan,
                                         const RowLoops& rows) {
  return MakeKernelOf(call, plan, rows, /*output=*/0);
}

}  // namespace opserve::kernels
