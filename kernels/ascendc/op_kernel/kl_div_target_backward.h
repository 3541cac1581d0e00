// The gradient of the KL divergence with respect to target, on a vector core. With B the broadcast
// shape of self and target:
//
//   log target:             term = (grad_output * scale) * exp(target) * (target - self + 1)
//   plain, target not 0:    term = (grad_output * scale) * (ln(target) - self + 1)
//   plain, target 0 or -0:  term = 0, whatever grad_output and self are
//   output = terms summed over the axes along which target is broadcast, in target's shape
//
// Inputs are contiguous, float, half or bfloat16_t in any mixture, and widened to float; sums are
// taken in float; the result is rounded once, to nearest with ties to even, to target's dtype.
// Equal inputs give equal bits, whatever the number of cores.
#ifndef OPSERVE_KERNELS_ASCENDC_OP_KERNEL_KL_DIV_TARGET_BACKWARD_H_
#define OPSERVE_KERNELS_ASCENDC_OP_KERNEL_KL_DIV_TARGET_BACKWARD_H_

#include "input.h"
#include "kernel_operator.h"
#include "kl_div_target_backward_tiling.h"

namespace opserve::ascendc {

constexpr int32_t kRepeatElements = 64;  // floats that one repeat of a vector instruction takes

__aicore__ inline int32_t RoundUp(int32_t value, int32_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// A tile, or what is known of it: where it starts in each input, and its size.
struct Tile {
  __aicore__ inline Tile() {}

  int64_t offset[kNumInputs] = {0, 0, 0};
  int32_t rows = 1;
  int32_t cols = 1;
};

template <typename GradOutput, typename Self, typename Target>
class KlDivTargetBackward {
 public:
  __aicore__ inline KlDivTargetBackward() {}

  // `pipe` and `tiling` outlive this. Addresses are of global memory, aligned to their elements.
  __aicore__ inline void Init(GM_ADDR grad_output, GM_ADDR self, GM_ADDR target,
                              GM_ADDR grad_target, const KlDivTargetBackwardTiling* tiling,
                              AscendC::TPipe* pipe) {
    tiling_ = tiling;
    out_global_.SetGlobalBuffer(reinterpret_cast<__gm__ Target*>(grad_target),
                                tiling->num_elements[kTarget]);
    const int32_t tile_bytes = tiling->tile_elements * static_cast<int32_t>(sizeof(float));
    pipe->InitBuffer(out_queue_, 2, tiling->tile_elements * static_cast<int32_t>(sizeof(Target)));
    pipe->InitBuffer(factor_, tile_bytes);
    pipe->InitBuffer(term_, tile_bytes);
    pipe->InitBuffer(sum_, tile_bytes);
    pipe->InitBuffer(nonzero_, tiling->tile_elements / 8);
    pipe->InitBuffer(row_sums_, kMaxRows * static_cast<int32_t>(sizeof(float)));
    grad_output_.Init(tiling, kGradOutput, grad_output, pipe);
    self_.Init(tiling, kSelf, self, pipe);
    target_.Init(tiling, kTarget, target, pipe);
  }

  // Computes this core's items: an equal share, the first ones have one more where it does not come
  // out even.
  __aicore__ inline void Process() {
    const int64_t block = AscendC::GetBlockIdx();
    const int64_t blocks = AscendC::GetBlockNum();
    const int64_t share = tiling_->num_items / blocks;
    const int64_t rest = tiling_->num_items % blocks;
    const int64_t first = block * share + (block < rest ? block : rest);
    const int64_t last = first + share + (block < rest ? 1 : 0);
    for (int64_t item = first; item < last; ++item) {
      ProcessItem(item);
    }
    grad_output_.Finish();
    self_.Finish();
    target_.Finish();
  }

 private:
  __aicore__ inline void ProcessItem(int64_t item) {
    Tile kept;
    Locate(item, false, tiling_->kept, tiling_->num_kept, &kept);
    const bool is_sum = tiling_->num_steps != 1;
    if (is_sum) {
      AscendC::Duplicate(sum_.Get<float>(), 0.0f, tiling_->tile_elements);
      AscendC::PipeBarrier<PIPE_V>();
    }
    Tile tile = kept;  // of step 0: where an axis is reduced, no later tile is larger
    for (int64_t step = 0; step < tiling_->num_steps; ++step) {
      Tile part = kept;
      Locate(step, true, tiling_->reduced, tiling_->num_reduced, &part);
      if (step == 0) tile = part;
      grad_output_.CopyIn(part.offset[kGradOutput], part.rows, part.cols);
      self_.CopyIn(part.offset[kSelf], part.rows, part.cols);
      target_.CopyIn(part.offset[kTarget], part.rows, part.cols);
      ComputeTerm(part.rows);
      if (is_sum) AddTerm(tile, part);
    }
    Fold(is_sum ? sum_.Get<float>() : term_.Get<float>(), tile);
    CopyOut(is_sum ? sum_.Get<float>() : term_.Get<float>(), tile, kept.offset[kTarget]);
  }

  // Adds to `tile` what the digits of `index` say about the axes that are reduced, or are not: the
  // outer `axes`, then row and column of the tile within the innermost axes.
  __aicore__ inline void Locate(int64_t index, bool reduced, const KlDivTargetBackwardAxis* axes,
                                int32_t num_axes, Tile* tile) const {
    if ((tiling_->col_reduced != 0) == reduced) {
      tile->cols = TakeChunk(tiling_->col, tiling_->col_tile, &index, tile);
    }
    if ((tiling_->row_reduced != 0) == reduced) {
      tile->rows = TakeChunk(tiling_->row, tiling_->row_tile, &index, tile);
    }
    for (int32_t axis = num_axes - 1; axis >= 0; --axis) {
      Move(axes[axis], index % axes[axis].count, tile);
      index /= axes[axis].count;
    }
  }

  // Takes the last digit off `index`: which chunk of `axis`. Its size.
  __aicore__ inline int32_t TakeChunk(const KlDivTargetBackwardAxis& axis, int32_t chunk,
                                      int64_t* index, Tile* tile) const {
    const int64_t chunks = (axis.count + chunk - 1) / chunk;
    const int64_t start = *index % chunks * chunk;
    *index /= chunks;
    Move(axis, start, tile);
    return axis.count - start < chunk ? static_cast<int32_t>(axis.count - start) : chunk;
  }

  __aicore__ inline void Move(const KlDivTargetBackwardAxis& axis, int64_t by, Tile* tile) const {
    for (int32_t input = 0; input < kNumInputs; ++input) {
      tile->offset[input] += axis.stride[input] * by;
    }
  }

  // The terms of the tile copied in last, into term_. Elements between the rows are computed, too:
  // whole repeats take no longer, and CompareScalar wants them.
  __aicore__ inline void ComputeTerm(int32_t rows) {
    const int32_t count = RoundUp(rows * tiling_->pitch, kRepeatElements);
    AscendC::LocalTensor<float> grad_output = grad_output_.Take(rows);
    AscendC::LocalTensor<float> self = self_.Take(rows);
    AscendC::LocalTensor<float> target = target_.Take(rows);
    AscendC::LocalTensor<float> factor = factor_.Get<float>();
    AscendC::LocalTensor<float> term = term_.Get<float>();
    AscendC::Muls(factor, grad_output, tiling_->scale, count);
    if (tiling_->log_target != 0) {
      AscendC::Exp(term, target, count);
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Mul(factor, factor, term, count);
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Sub(term, target, self, count);
    } else {
      AscendC::Ln(term, target, count);
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Sub(term, term, self, count);
    }
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Adds(term, term, 1.0f, count);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Mul(term, factor, term, count);
    if (tiling_->log_target == 0) {
      // Chosen, not multiplied by a mask: 0 times the NaN of ln(0) * 0 would stay NaN.
      AscendC::LocalTensor<uint8_t> nonzero = nonzero_.Get<uint8_t>();
      AscendC::CompareScalar(nonzero, target, 0.0f, AscendC::CMPMODE::NE, count);
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Select(term, nonzero, term, 0.0f, AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE, count);
    }
    AscendC::PipeBarrier<PIPE_V>();
    grad_output_.Release();
    self_.Release();
    target_.Release();
  }

  // Adds the terms of `part` to sum_, element by element. A part at the end of an axis covers less
  // than the `tile` that sum_ has room for.
  __aicore__ inline void AddTerm(const Tile& tile, const Tile& part) {
    AscendC::LocalTensor<float> sum = sum_.Get<float>();
    AscendC::LocalTensor<float> term = term_.Get<float>();
    if (part.cols == tile.cols) {
      AscendC::Add(sum, sum, term, part.rows * tiling_->pitch);
    } else {
      for (int32_t row = 0; row < part.rows; ++row) {
        const int32_t start = row * tiling_->pitch;
        AscendC::Add(sum[start], sum[start], term[start], part.cols);
      }
    }
    AscendC::PipeBarrier<PIPE_V>();
  }

  // Sums `values` over the tile's reduced axes: rows into row 0, then the columns of each row,
  // halving them, into row_sums_.
  __aicore__ inline void Fold(const AscendC::LocalTensor<float>& values, const Tile& tile) {
    int32_t rows = tile.rows;
    if (tiling_->row_reduced != 0) {
      for (int32_t row = 1; row < rows; ++row) {
        AscendC::Add(values, values, values[row * tiling_->pitch], tile.cols);
        AscendC::PipeBarrier<PIPE_V>();
      }
      rows = 1;
    }
    if (tiling_->col_reduced == 0) return;
    int32_t cols = tile.cols;
    while (cols > kRepeatElements) {
      const int32_t half_cols = RoundUp((cols + 1) / 2, kRepeatElements);
      for (int32_t row = 0; row < rows; ++row) {
        const int32_t start = row * tiling_->pitch;
        AscendC::Add(values[start], values[start], values[start + half_cols], cols - half_cols);
      }
      AscendC::PipeBarrier<PIPE_V>();
      cols = half_cols;
    }
    const int32_t row_blocks = tiling_->pitch * static_cast<int32_t>(sizeof(float)) / kBlockBytes;
    AscendC::WholeReduceSum(row_sums_.Get<float>(), values, cols, rows, 1, 1, row_blocks);
    AscendC::PipeBarrier<PIPE_V>();
  }

  // Rounds the item's sums and writes them. Those of reduced columns are in row_sums_, one per row.
  __aicore__ inline void CopyOut(const AscendC::LocalTensor<float>& values, const Tile& tile,
                                 int64_t offset) {
    const int32_t rows = tiling_->row_reduced != 0 ? 1 : tile.rows;
    AscendC::LocalTensor<Target> out = out_queue_.template AllocTensor<Target>();
    if (tiling_->col_reduced != 0) {
      Round(out, row_sums_.Get<float>(), rows);
    } else {
      Round(out, values, rows * tiling_->pitch);
    }
    AscendC::PipeBarrier<PIPE_V>();
    out_queue_.EnQue(out);
    out = out_queue_.template DeQue<Target>();
    const int32_t element = static_cast<int32_t>(sizeof(Target));
    AscendC::DataCopyExtParams shape = {1, static_cast<uint32_t>(rows * element), 0, 0, 0};
    if (tiling_->col_reduced == 0) {
      shape.blockCount = static_cast<uint16_t>(rows);
      shape.blockLen = static_cast<uint32_t>(tile.cols * element);
      shape.srcStride = LocalGap<Target>(tile.cols, tiling_->pitch);
      shape.dstStride =
          rows == 1 ? 0 : static_cast<uint32_t>((tiling_->col.count - tile.cols) * element);
    }
    AscendC::DataCopyPad(out_global_[offset], out, shape);
    out_queue_.FreeTensor(out);
  }

  __aicore__ inline void Round(const AscendC::LocalTensor<Target>& out,
                               const AscendC::LocalTensor<float>& values, int32_t count) {
    if constexpr (AscendC::IsSameType<Target, float>::value) {
      AscendC::Muls(out, values, 1.0f, count);
    } else {
      AscendC::Cast(out, values, AscendC::RoundMode::CAST_RINT, count);
    }
  }

  const KlDivTargetBackwardTiling* tiling_;
  Input<GradOutput> grad_output_;
  Input<Self> self_;
  Input<Target> target_;
  AscendC::GlobalTensor<Target> out_global_;
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> out_queue_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> factor_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> term_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> sum_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> nonzero_;  // bit i: target's element i is not 0
  AscendC::TBuf<AscendC::TPosition::VECCALC> row_sums_;
};

}  // namespace opserve::ascendc

#endif  // OPSERVE_KERNELS_ASCENDC_OP_KERNEL_KL_DIV_TARGET_BACKWARD_H_
