// One input of the kernel: how its part of a tile comes from global memory and becomes floats in
// the tile's layout, whatever the dtype and along whichever axes it is broadcast.
#ifndef OPSERVE_KERNELS_ASCENDC_OP_KERNEL_INPUT_H_
#define OPSERVE_KERNELS_ASCENDC_OP_KERNEL_INPUT_H_

#include "kernel_operator.h"
#include "kl_div_target_backward_tiling.h"

namespace opserve::ascendc {

constexpr int32_t kBlockBytes = 32;  // unit of local memory

// What the scalar unit reads must have been written by the vector unit before, and the other way
// round.
template <AscendC::HardEvent kEvent>
__aicore__ inline void Order(AscendC::TPipe* pipe) {
  const int32_t event = static_cast<int32_t>(pipe->FetchEventID(kEvent));
  AscendC::SetFlag<kEvent>(event);
  AscendC::WaitFlag<kEvent>(event);
}

// Units of 32 bytes between the end of a row of `cols` elements in local memory and the next one's
// start, `pitch` elements apart. A row ends with the unit that its last element is in.
template <typename T>
__aicore__ inline uint32_t LocalGap(int32_t cols, int32_t pitch) {
  const int32_t row_bytes = cols * static_cast<int32_t>(sizeof(T));
  const int32_t used = (row_bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  return static_cast<uint32_t>((pitch * static_cast<int32_t>(sizeof(T)) - used) / kBlockBytes);
}

__aicore__ inline int32_t Smaller(int32_t a, int64_t b) {
  return a < b ? a : static_cast<int32_t>(b);
}

// T: float, half or bfloat16_t. For each tile: CopyIn, then Take, then Release. Finish at the end.
template <typename T>
class Input {
 public:
  __aicore__ inline Input() {}

  // `index`: kGradOutput, kSelf or kTarget. `tiling` and `pipe` outlive this.
  __aicore__ inline void Init(const KlDivTargetBackwardTiling* tiling, int32_t index,
                              GM_ADDR address, AscendC::TPipe* pipe) {
    tiling_ = tiling;
    pipe_ = pipe;
    row_stride_ = tiling->row.stride[index];
    is_matrix_ = tiling->col.stride[index] != 0;
    is_constant_ = tiling->is_constant[index] != 0;
    global_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(address), tiling->num_elements[index]);
    pipe->InitBuffer(queue_, 2, tiling->slot_bytes[index]);
    if (!kIsFloat || !is_matrix_) {
      pipe->InitBuffer(values_, tiling->tile_elements * static_cast<int32_t>(sizeof(float)));
    }
    if (!is_matrix_) {
      pipe->InitBuffer(column_, kMaxRows * static_cast<int32_t>(sizeof(float)));
    }
    if (is_constant_) {
      const int32_t rows = Smaller(tiling->row_tile, tiling->row.count);
      Start(0, rows, Smaller(tiling->col_tile, tiling->col.count));
      constant_ = Widen(rows);
    }
  }

  // Queues the copy of the input's part of a tile; `offset`: of the tile's first element.
  __aicore__ inline void CopyIn(int64_t offset, int32_t rows, int32_t cols) {
    if (!is_constant_) Start(offset, rows, cols);
  }

  // The values of the tile that was copied in last but not taken yet, row r from element r * pitch
  // on. Elements between the rows are arbitrary. Valid until Release.
  __aicore__ inline AscendC::LocalTensor<float> Take(int32_t rows) {
    return is_constant_ ? constant_ : Widen(rows);
  }

  __aicore__ inline void Release() {
    if (!is_constant_) FreeRaw();
  }

  __aicore__ inline void Finish() {
    if (is_constant_) FreeRaw();
  }

 private:
  static constexpr bool kIsFloat = AscendC::IsSameType<T, float>::value;

  __aicore__ inline void Start(int64_t offset, int32_t rows, int32_t cols) {
    AscendC::LocalTensor<T> raw = queue_.template AllocTensor<T>();
    if (!is_matrix_) {  // values of rows, neighbours in global memory, or one for all
      CopyBlocks(raw, offset, 1, row_stride_ == 0 ? 1 : rows, 0, 0);
    } else if (row_stride_ != 0) {
      CopyBlocks(raw, offset, rows, cols, row_stride_ - cols, LocalGap<T>(cols, tiling_->pitch));
    } else {  // the same row everywhere
      for (int32_t row = 0; row < rows; ++row) {
        CopyBlocks(raw[row * tiling_->pitch], offset, 1, cols, 0, 0);
      }
    }
    queue_.EnQue(raw);
  }

  // `global_gap`: elements between the blocks; `local_gap`: units of 32 bytes.
  __aicore__ inline void CopyBlocks(const AscendC::LocalTensor<T>& to, int64_t offset,
                                    int32_t blocks, int32_t count, int64_t global_gap,
                                    uint32_t local_gap) {
    const AscendC::DataCopyExtParams shape = {
        static_cast<uint16_t>(blocks), static_cast<uint32_t>(count * sizeof(T)),
        static_cast<uint32_t>(global_gap * static_cast<int64_t>(sizeof(T))), local_gap, 0};
    const AscendC::DataCopyPadExtParams<T> no_padding;
    AscendC::DataCopyPad(to, global_[offset], shape, no_padding);
  }

  // Waits for what was copied in first, and frees its buffer unless that holds the floats.
  __aicore__ inline AscendC::LocalTensor<float> Widen(int32_t rows) {
    AscendC::LocalTensor<T> raw = queue_.template DeQue<T>();
    if (!is_matrix_) {
      FillRows(raw, rows);
      return values_.template Get<float>();
    }
    if constexpr (kIsFloat) {
      raw_ = raw;
      return raw;
    } else {
      AscendC::LocalTensor<float> values = values_.template Get<float>();
      AscendC::Cast(values, raw, AscendC::RoundMode::CAST_NONE, rows * tiling_->pitch);
      queue_.FreeTensor(raw);
      AscendC::PipeBarrier<PIPE_V>();
      return values;
    }
  }

  __aicore__ inline void FreeRaw() {
    if (kIsFloat && is_matrix_) queue_.FreeTensor(raw_);
  }

  // Fills each row of values_ with its one value. Frees `raw`.
  __aicore__ inline void FillRows(AscendC::LocalTensor<T>& raw, int32_t rows) {
    AscendC::LocalTensor<float> column = column_.template Get<float>();
    AscendC::LocalTensor<float> values = values_.template Get<float>();
    const int32_t distinct = row_stride_ == 0 ? 1 : rows;
    if constexpr (kIsFloat) {
      AscendC::Muls(column, raw, 1.0f, distinct);
    } else {
      AscendC::Cast(column, raw, AscendC::RoundMode::CAST_NONE, distinct);
    }
    queue_.FreeTensor(raw);
    Order<AscendC::HardEvent::V_S>(pipe_);
    const int32_t width = rows / distinct * tiling_->pitch;
    for (int32_t row = 0; row < distinct; ++row) {
      AscendC::Duplicate(values[row * tiling_->pitch], column.GetValue(row), width);
    }
    Order<AscendC::HardEvent::S_V>(pipe_);
    AscendC::PipeBarrier<PIPE_V>();
  }

  const KlDivTargetBackwardTiling* tiling_;
  AscendC::TPipe* pipe_;
  int64_t row_stride_;
  bool is_matrix_;  // runs along the columns
  bool is_constant_;
  AscendC::GlobalTensor<T> global_;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> queue_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> values_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> column_;
  AscendC::LocalTensor<T> raw_;           // holds the floats that Widen gave, where T is float
  AscendC::LocalTensor<float> constant_;  // what Take gives for every tile
};

}  // namespace opserve::ascendc

#endif  // OPSERVE_KERNELS_ASCENDC_OP_KERNEL_INPUT_H_
