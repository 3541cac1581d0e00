#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cpu/block.h"
#include "kernels/cpu/call.h"
#include "kernels/cpu/iteration.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/math.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/sum.h"
#include "kernels/cpu/tasks.h"
#include "kernels/cpu/tile.h"

namespace opserve::kernels {
namespace {

// grad_output - exp(output) * sum
struct Term {
  static constexpr int kInputs = 2;
  template <typename V>
  static V Value(const V* inputs, V sum) {
    return inputs[0] - Exp(inputs[1]) * sum;
  }
};

// Tiles between two looks whether to go on. A panel cannot be cut into tasks, as its elements need
// the sums of all of it.
constexpr int64_t kTilesPerLook = kTaskElements / kTileElements;

// Rows from here on are computed one by one, with one sum for all of the row.
constexpr int64_t kLongRow = 64;

// The tensors are matrices with `dim` along the rows or down the columns. The other direction is
// cut into panels of one tile's width; a panel is walked twice, for its sums and for its elements.
// S: the dtype of both inputs; O: S if the output has that dtype, or float.
template <typename S, typename O>
class LogSoftmaxBackward final : public Kernel {
 public:
  explicit LogSoftmaxBackward(const SumMatrix& plan)
      : matrix_(plan.matrix), columns_are_summed_(plan.columns_are_summed) {
    num_panels_ = columns_are_summed_ ? matrix_.num_row_tiles() : matrix_.num_column_tiles();
    num_tiles_ = columns_are_summed_ ? matrix_.num_column_tiles() : matrix_.num_row_tiles();
    const int64_t panel_elements =
        std::max<int64_t>(1, num_tiles_) * matrix_.tile_rows * matrix_.tile_columns;
    panels_per_task_ = std::max<int64_t>(1, kTaskElements / panel_elements);
    for (const Operand& input : std::span(matrix_.operands).first(Term::kInputs)) {
      reads_blocks_ |= input.block_rows > 0;
    }
    if (reads_blocks_) panels_per_task_ = matrix_.task_row_tiles;
  }

  size_t workspace_bytes() const override { return 0; }
  int64_t num_elements() const override { return matrix_.num_elements(); }

  void Run(const void* const* inputs, void* const* outputs, void* /*workspace*/,
           TaskRunner& runner) const override {
    RunTasks(runner, CeilDivide(num_panels_, panels_per_task_), [&](int64_t task) {
      TileReader<S> grad_output(matrix_.operands[0], inputs[0]);
      TileReader<S> log_softmax(matrix_.operands[1], inputs[1]);
      TileWriter<O> writer(matrix_.operands[2], matrix_.num_rows * matrix_.num_columns, outputs[0]);
      const int64_t begin = task * panels_per_task_;
      const int64_t end = std::min(begin + panels_per_task_, num_panels_);
      for (int64_t panel = begin; panel < end; ++panel) {
        // A block has many times the elements of other tasks.
        if (reads_blocks_ && runner.MustStop()) return;
        RunPanel(panel, grad_output, log_softmax, writer, runner);
      }
    });
  }

 private:
  void RunPanel(int64_t panel, TileReader<S>& grad_output, TileReader<S>& log_softmax,
                TileWriter<O>& writer, const TaskRunner& runner) const {
    alignas(64) float sums[kTileElements];
    PanelSums<float> panel_sums(columns_are_summed_, TileOf(panel, 0), num_tiles_, sums);
    for (int64_t i = 0; i < num_tiles_; ++i) {
      if (i % kTilesPerLook == kTilesPerLook - 1 && runner.MustStop()) return;
      const Tile tile = TileOf(panel, i);
      panel_sums.Add(grad_output.Read(tile), tile);
    }
    panel_sums.Finish();

    for (int64_t i = 0; i < num_tiles_; ++i) {
      if (i % kTilesPerLook == kTilesPerLook - 1 && runner.MustStop()) return;
      const Tile tile = TileOf(panel, i);
      const S* const values[] = {grad_output.Read(tile), log_softmax.Read(tile)};
      writer.Write(tile, [&](O* results, bool streams) {
        // Walking a panel twice leaves no gain from streaming, unless results push a block out.
        ComputeTile(values, sums, tile, streams && reads_blocks_, results);
      });
    }
  }

  void ComputeTile(const S* const* inputs, const float* sums, const Tile& tile, bool streams,
                   O* results) const {
    if (columns_are_summed_ && tile.num_columns < kLongRow) {
      alignas(64) float spread[kTileElements];
      for (int64_t i = 0; i < tile.num_rows; ++i) {
        std::fill_n(spread + i * tile.num_columns, tile.num_columns, sums[i]);
      }
      const float* const scales = spread;
      return Block<Term>(inputs, scales, tile.num_elements(), streams, results);
    }
    for (int64_t i = 0; i < tile.num_rows; ++i) {
      const int64_t offset = i * tile.num_columns;
      const S* const row[] = {inputs[0] + offset, inputs[1] + offset};
      if (columns_are_summed_) {
        Block<Term>(row, sums[i], tile.num_columns, streams, results + offset);
      } else {
        Block<Term>(row, sums, tile.num_columns, streams, results + offset);
      }
    }
  }

  Tile TileOf(int64_t panel, int64_t index) const {
    return columns_are_summed_ ? matrix_.TileAt(panel, index) : matrix_.TileAt(index, panel);
  }

  const Matrix matrix_;
  const bool columns_are_summed_;
  bool reads_blocks_ = false;  // of whole rows, those of a task
  int64_t num_panels_;
  int64_t num_tiles_;  // of one panel
  int64_t panels_per_task_;
};

std::unique_ptr<Kernel> Make(const Call& call) {
  const Layout& output = Input(call, 1);
  const Layout operands[] = {Input(call, 0), output, Output(call, 0)};
  std::vector<Axis> axes = BroadcastAxes(operands);
  if (!axes.empty()) axes[AxisAttribute(IntAttribute(call, 0), output.rank)].is_summed = true;
  SumMatrix plan = MakeSumMatrix(operands, std::move(axes));
  ReadRowsInBlocks(Term::kInputs, std::size(operands), plan);
  return VisitTileTypes</*kTakesDouble=*/false>(
      operands, [&]<typename S, typename O>(S, O) -> std::unique_ptr<Kernel> {
        return std::make_unique<LogSoftmaxBackward<S, O>>(plan);
      });
}

}  // namespace

std::span<const KernelEntry> LogSoftmaxBackwardKernels() {
  static constexpr KernelEntry kEntries[] = {{"aclnnLogSoftmaxBackward", &Make}};
  return kEntries;
}

}  // namespace opserve::kernels
