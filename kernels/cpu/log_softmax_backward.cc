#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cpu/iteration.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/math.h"
#include "kernels/cpu/sum.h"
#include "kernels/cpu/tasks.h"
#include "kernels/cpu/tile.h"

namespace opserve::kernels {
namespace {

// values = grad_output - exp(output) * sum
void ElementBlock(const float* __restrict grad_output, const float* __restrict output,
                  const float* __restrict sum, int64_t count, float* __restrict values) {
  for (int64_t i = 0; i < count; ++i) values[i] = grad_output[i] - Exp(output[i]) * sum[i];
}

// The tensors are matrices with `dim` along the rows or down the columns. The other direction is
// cut into panels of one tile's width; a panel is walked twice, for its sums and for its elements.
class LogSoftmaxBackward final : public Kernel {
 public:
  explicit LogSoftmaxBackward(const SumMatrix& plan)
      : matrix_(plan.matrix), columns_are_summed_(plan.columns_are_summed) {
    num_panels_ = columns_are_summed_ ? matrix_.num_row_tiles() : matrix_.num_column_tiles();
    num_tiles_ = columns_are_summed_ ? matrix_.num_column_tiles() : matrix_.num_row_tiles();
    const int64_t panel_elements =
        std::max<int64_t>(1, num_tiles_) * matrix_.tile_rows * matrix_.tile_columns;
    panels_per_task_ = std::max<int64_t>(1, kTaskElements / panel_elements);
  }

  size_t workspace_bytes() const override { return 0; }

  void Run(const void* const* inputs, void* output, void* /*workspace*/,
           TaskRunner& runner) const override {
    RunTasks(runner, CeilDivide(num_panels_, panels_per_task_), [&](int64_t task) {
      TileReader<float> grad_output(matrix_.operands[0], inputs[0]);
      TileReader<float> log_softmax(matrix_.operands[1], inputs[1]);
      TileWriter<float> writer(matrix_.operands[2], matrix_.num_rows * matrix_.num_columns, output);
      const int64_t begin = task * panels_per_task_;
      const int64_t end = std::min(begin + panels_per_task_, num_panels_);
      for (int64_t panel = begin; panel < end; ++panel) {
        RunPanel(panel, grad_output, log_softmax, writer);
      }
    });
  }

 private:
  void RunPanel(int64_t panel, TileReader<float>& grad_output, TileReader<float>& log_softmax,
                TileWriter<float>& writer) const {
    alignas(64) float sums[kTileElements];
    SumPanel(panel, grad_output, sums);
    alignas(64) float spread[kTileElements];
    Tile last;
    for (int64_t i = 0; i < num_tiles_; ++i) {
      const Tile tile = TileOf(panel, i);
      if (tile.num_rows != last.num_rows || tile.num_columns != last.num_columns) {
        SpreadSums(sums, tile, spread);
        last = tile;
      }
      writer.Write(tile, [&](float* values) {
        ElementBlock(grad_output.Read(tile), log_softmax.Read(tile), spread, tile.num_elements(),
                     values);
      });
    }
  }

  // sums = those of the gradient in each row or column of the panel.
  void SumPanel(int64_t panel, TileReader<float>& grad_output, float* sums) const {
    alignas(64) float accumulators[kTileElements] = {};
    const Tile first = TileOf(panel, 0);
    for (int64_t i = 0; i < num_tiles_; ++i) {
      const Tile tile = TileOf(panel, i);
      AddTile(grad_output.Read(tile), tile.num_rows, tile.num_columns, first.num_columns,
              accumulators);
    }
    if (columns_are_summed_) {
      SumRows(accumulators, first.num_rows, first.num_columns, sums);
    } else {
      SumColumns(accumulators, first.num_rows, first.num_columns, sums);
    }
  }

  // spread = for each element of the tile the sum that belongs to it.
  void SpreadSums(const float* sums, const Tile& tile, float* spread) const {
    for (int64_t i = 0; i < tile.num_rows; ++i) {
      float* row = spread + i * tile.num_columns;
      if (columns_are_summed_) {
        std::fill_n(row, tile.num_columns, sums[i]);
      } else {
        std::copy_n(sums, tile.num_columns, row);
      }
    }
  }

  Tile TileOf(int64_t panel, int64_t index) const {
    return columns_are_summed_ ? matrix_.TileAt(panel, index) : matrix_.TileAt(index, panel);
  }

  const Matrix matrix_;
  const bool columns_are_summed_;
  int64_t num_panels_;
  int64_t num_tiles_;  // of one panel
  int64_t panels_per_task_;
};

}  // namespace

std::unique_ptr<Kernel> MakeLogSoftmaxBackward(const Layout& grad_output, const Layout& output,
                                               const Layout& out, int dim) {
  const Layout operands[] = {grad_output, output, out};
  std::vector<Axis> axes = BroadcastAxes(operands);
  if (!axes.empty()) axes[dim].is_summed = true;
  return std::make_unique<LogSoftmaxBackward>(MakeSumMatrix(operands, std::move(axes)));
}

}  // namespace opserve::kernels
