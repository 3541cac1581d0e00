#include "kernels/cpu/term.h"

#include <algorithm>
#include <bit>

#include "kernels/cpu/iteration.h"
#include "kernels/cpu/sum.h"
#include "kernels/cpu/tasks.h"
#include "kernels/cpu/tile.h"

namespace opserve::kernels {
namespace {

// What both kernels below know: the inputs are the matrix's first operands, the output is the last.
template <typename S, typename O>
struct TermPlan {
  Matrix matrix;
  int num_inputs = 0;
  TermPositions positions = {};
  Computed<S> scale = 1;
  TermBlock<S, O> block = nullptr;

  const Operand& out() const { return matrix.operands[num_inputs]; }
};

template <typename S, typename O>
bool Reads(const TermPlan<S, O>& plan, size_t argument) {
  const auto end = plan.positions.begin() + plan.num_inputs;
  return std::find(plan.positions.begin(), end, static_cast<int>(argument)) != end;
}

// The inputs' tiles. A reader beyond the last input is never asked.
template <typename S>
class InputReaders {
 public:
  template <typename O>
  InputReaders(const TermPlan<S, O>& plan, const void* const* inputs)
      : num_inputs_(plan.num_inputs),
        readers_{TileReader<S>(plan.matrix.operands[0], inputs[plan.positions[0]]),
                 TileReader<S>(plan.matrix.operands[1], inputs[plan.positions[1]]),
                 TileReader<S>(plan.matrix.operands[2], inputs[plan.positions[2]])} {}

  std::array<const S*, kMaxTermInputs> Read(const Tile& tile) {
    std::array<const S*, kMaxTermInputs> values = {};
    for (int i = 0; i < num_inputs_; ++i) values[i] = readers_[i].Read(tile);
    return values;
  }

 private:
  const int num_inputs_;
  TileReader<S> readers_[kMaxTermInputs];
};

template <typename S, typename O>
class ElementwiseKernel final : public Kernel {
 public:
  explicit ElementwiseKernel(const TermPlan<S, O>& plan)
      : plan_(plan),
        column_tasks_(CeilDivide(plan.matrix.num_column_tiles(), plan.matrix.task_column_tiles)),
        num_tasks_(CeilDivide(plan.matrix.num_row_tiles(), plan.matrix.task_row_tiles) *
                   column_tasks_) {}

  size_t workspace_bytes() const override { return 0; }
  int64_t num_elements() const override { return plan_.matrix.num_elements(); }
  bool ReadsInput(size_t argument) const override { return Reads(plan_, argument); }

  void Run(const void* const* inputs, void* const* outputs, void* /*workspace*/,
           TaskRunner& runner) const override {
    RunTasks(runner, num_tasks_, [&](int64_t task) {
      InputReaders<S> readers(plan_, inputs);
      const Matrix& matrix = plan_.matrix;
      TileWriter<O> writer(plan_.out(), matrix.num_rows * matrix.num_columns, outputs[0]);
      const int64_t row_begin = task / column_tasks_ * matrix.task_row_tiles;
      const int64_t row_end = std::min(row_begin + matrix.task_row_tiles, matrix.num_row_tiles());
      const int64_t column_begin = task % column_tasks_ * matrix.task_column_tiles;
      const int64_t column_end =
          std::min(column_begin + matrix.task_column_tiles, matrix.num_column_tiles());
      for (int64_t row = row_begin; row < row_end; ++row) {
        for (int64_t column = column_begin; column < column_end; ++column) {
          const Tile tile = matrix.TileAt(row, column);
          writer.Write(tile, [&](O* values, bool streams) {
            plan_.block(readers.Read(tile).data(), plan_.scale, tile.num_elements(), streams,
                        values);
          });
        }
      }
    });
  }

 private:
  const TermPlan<S, O> plan_;
  const int64_t column_tasks_;
  const int64_t num_tasks_;
};

// Sums along the rows or down the columns of the matrix. The other direction is cut into panels of
// one tile's width, the summed direction into chunks. A unit of work is one chunk of one panel: it
// adds its tiles up into one tile of accumulators and folds that into one sum per row or column.
// Where there are several chunks, the sums go to the workspace, a row of it per chunk, and are
// added up pairwise afterwards. Few terms are added in sequence, which also keeps errors small.
template <typename S>
class SumKernel final : public Kernel {
  using T = Computed<S>;

 public:
  SumKernel(const TermPlan<S, T>& plan, bool columns_are_summed)
      : plan_(plan), columns_are_summed_(columns_are_summed) {
    const Matrix& matrix = plan_.matrix;
    num_kept_ = columns_are_summed ? matrix.num_rows : matrix.num_columns;
    panel_ = columns_are_summed ? matrix.tile_rows : matrix.tile_columns;
    const int64_t num_tiles =
        columns_are_summed ? matrix.num_column_tiles() : matrix.num_row_tiles();
    const int64_t tile_elements = matrix.tile_rows * matrix.tile_columns;
    tiles_per_chunk_ = std::clamp<int64_t>(num_tiles, 1, kTaskElements / tile_elements);
    num_tiles_ = num_tiles;
    num_chunks_ = std::max<int64_t>(1, CeilDivide(num_tiles, tiles_per_chunk_));
    num_units_ = CeilDivide(num_kept_, panel_) * num_chunks_;
    units_per_task_ = std::max<int64_t>(1, kTaskElements / (tiles_per_chunk_ * tile_elements));
  }

  size_t workspace_bytes() const override {
    return num_chunks_ == 1 ? 0 : num_chunks_ * num_kept_ * sizeof(T);
  }
  int64_t num_elements() const override { return plan_.matrix.num_elements(); }
  bool ReadsInput(size_t argument) const override { return Reads(plan_, argument); }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           TaskRunner& runner) const override {
    T* partial_sums = static_cast<T*>(workspace);
    RunTasks(runner, CeilDivide(num_units_, units_per_task_), [&](int64_t task) {
      InputReaders<S> readers(plan_, inputs);
      TileWriter<T> writer(plan_.out(), num_kept_, outputs[0]);
      const int64_t begin = task * units_per_task_;
      const int64_t end = std::min(begin + units_per_task_, num_units_);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t panel = i / num_chunks_;
        const int64_t chunk = i % num_chunks_;
        if (num_chunks_ == 1) {
          writer.Write(SumsOf(panel * panel_),
                       [&](T* sums, bool) { SumUnit(panel, chunk, readers, sums); });
        } else {
          SumUnit(panel, chunk, readers, partial_sums + chunk * num_kept_ + panel * panel_);
        }
      }
    });
    if (num_chunks_ == 1) return;
    const Rows rows = FoldRows(partial_sums, runner);
    const int64_t sums_per_task = std::max(panel_, kTaskElements / rows.count / panel_ * panel_);
    RunTasks(runner, CeilDivide(num_kept_, sums_per_task), [&](int64_t task) {
      TileWriter<T> writer(plan_.out(), num_kept_, outputs[0]);
      const int64_t end = std::min((task + 1) * sums_per_task, num_kept_);
      for (int64_t kept = task * sums_per_task; kept < end; kept += panel_) {
        const Tile tile = SumsOf(kept);
        T* sums = partial_sums + kept;
        AddPairwise(rows.count, rows.pitch, tile.num_elements(), sums);
        writer.Write(tile,
                     [&](T* values, bool) { std::copy_n(sums, tile.num_elements(), values); });
      }
    });
  }

 private:
  // Where the sums of the panel that begins at `kept` belong in the output.
  Tile SumsOf(int64_t kept) const {
    const int64_t count = std::min(panel_, num_kept_ - kept);
    return columns_are_summed_ ? Tile{kept, count, 0, 1} : Tile{0, 1, kept, count};
  }

  // Rows of partial sums that are still to be added up, `pitch` sums apart.
  struct Rows {
    int64_t count;
    int64_t pitch;
  };

  // Adds the chunks' rows up until few enough are left for one task to add one panel of them. Each
  // task adds a block of 2^k neighbouring rows into its first one. AddPairwise of all rows would
  // begin with the same sums, so however often they are folded the result has the same bits.
  Rows FoldRows(T* partial_sums, TaskRunner& runner) const {
    const auto most =
        static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(kTaskElements / panel_)));
    const int64_t num_panels = CeilDivide(num_kept_, panel_);
    Rows rows{num_chunks_, num_kept_};
    while (rows.count > most) {
      const int64_t num_blocks = CeilDivide(rows.count, most);
      RunTasks(runner, num_blocks * num_panels, [&](int64_t task) {
        const int64_t first = task / num_panels * most;
        const int64_t kept = task % num_panels * panel_;
        AddPairwise(std::min(most, rows.count - first), rows.pitch,
                    std::min(panel_, num_kept_ - kept), partial_sums + first * rows.pitch + kept);
      });
      rows = {num_blocks, rows.pitch * most};
    }
    return rows;
  }

  void SumUnit(int64_t panel, int64_t chunk, InputReaders<S>& readers, T* sums) const {
    alignas(64) T terms[kTileElements];
    const int64_t begin = chunk * tiles_per_chunk_;
    const int64_t end = std::min(begin + tiles_per_chunk_, num_tiles_);
    PanelSums<T> panel_sums(columns_are_summed_, TileOf(panel, begin), end - begin, sums);
    for (int64_t i = begin; i < end; ++i) {
      const Tile tile = TileOf(panel, i);
      plan_.block(readers.Read(tile).data(), plan_.scale, tile.num_elements(), /*streams=*/false,
                  terms);
      panel_sums.Add(terms, tile);
    }
    panel_sums.Finish();
  }

  Tile TileOf(int64_t panel, int64_t index) const {
    return columns_are_summed_ ? plan_.matrix.TileAt(panel, index)
                               : plan_.matrix.TileAt(index, panel);
  }

  const TermPlan<S, T> plan_;
  const bool columns_are_summed_;
  int64_t num_kept_;         // sums
  int64_t panel_;            // sums of one unit
  int64_t num_tiles_;        // in the summed direction
  int64_t tiles_per_chunk_;  // at least 1
  int64_t num_chunks_;       // at least 1
  int64_t num_units_;
  int64_t units_per_task_;
};

}  // namespace

template <typename S, typename O>
std::unique_ptr<Kernel> MakeTermKernelOf(std::span<const Layout> operands,
                                         const TermPositions& positions, Computed<S> scale,
                                         TermBlock<S, O> to_output,
                                         TermBlock<S, Computed<S>> to_sums) {
  const Layout& out = operands.back();
  const int num_inputs = static_cast<int>(operands.size()) - 1;
  std::vector<Axis> axes = BroadcastAxes(operands);
  bool is_summed = false;
  for (size_t d = 0; d < axes.size(); ++d) {
    const int64_t out_axis = static_cast<int64_t>(d + out.rank) - static_cast<int64_t>(axes.size());
    const int64_t out_extent = out_axis < 0 ? 1 : out.shape[out_axis];
    axes[d].is_summed = out_extent != axes[d].extent;
    is_summed |= axes[d].is_summed;
  }
  if (!is_summed) {
    return std::make_unique<ElementwiseKernel<S, O>>(TermPlan<S, O>{
        MakeElementwiseMatrix(operands, num_inputs), num_inputs, positions, scale, to_output});
  }
  const SumMatrix sum = MakeSumMatrix(operands, std::move(axes));
  return std::make_unique<SumKernel<S>>(
      TermPlan<S, Computed<S>>{sum.matrix, num_inputs, positions, scale, to_sums},
      sum.columns_are_summed);
}

#define OPSERVE_TERM_KERNEL(S, O)                                                                  \
  template std::unique_ptr<Kernel> MakeTermKernelOf(std::span<const Layout>, const TermPositions&, \
                                                    Computed<S>, TermBlock<S, O>,                  \
                                                    TermBlock<S, Computed<S>>);
OPSERVE_TERM_KERNEL(float, float)
OPSERVE_TERM_KERNEL(Half, Half)
OPSERVE_TERM_KERNEL(Half, float)
OPSERVE_TERM_KERNEL(Bfloat16, Bfloat16)
OPSERVE_TERM_KERNEL(Bfloat16, float)
OPSERVE_TERM_KERNEL(double, double)
#undef OPSERVE_TERM_KERNEL

}  // namespace opserve::kernels
