// What the host tells every core about one launch of the kernel. The same struct on both sides:
// plain data, no pointers, filled by op_host/plan.h and read by kl_div_target_backward.h.
//
// All shapes are merged before: B, the broadcast shape of self and target, is a list of axes along
// each of which every operand either runs on or stays where it is (stride 0: broadcast). An axis is
// *kept* if target runs along it and *reduced* if target does not: the output has target's shape,
// so terms along reduced axes are summed.
#ifndef OPSERVE_KERNELS_ASCENDC_OP_KERNEL_KL_DIV_TARGET_BACKWARD_TILING_H_
#define OPSERVE_KERNELS_ASCENDC_OP_KERNEL_KL_DIV_TARGET_BACKWARD_TILING_H_

#include <cstdint>

// Order of the inputs wherever there is an array of three.
constexpr int32_t kGradOutput = 0;
constexpr int32_t kSelf = 1;
constexpr int32_t kTarget = 2;
constexpr int32_t kNumInputs = 3;

constexpr int32_t kMaxAxes = 8;

// Rows of a tile. One vector instruction sums up to 255 rows (its repeat count).
constexpr int32_t kMaxRows = 128;

struct KlDivTargetBackwardAxis {
  int64_t count;
  int64_t
      stride[kNumInputs];  // elements; 0 where the input is broadcast. The output's is target's.
};

// A core works on tiles of row_tile by col_tile terms, cut out of the two innermost axes `row` and
// `col`. In local memory the rows of a tile are `pitch` elements apart: a multiple of 16, so that
// each row starts on 32 bytes in every dtype.
//
// An item is the part of the output that one tile covers: `num_items` of them, shared out to the
// cores. A core sums `num_steps` tiles into each of its items, one after the other, so no output
// element belongs to two cores and the order of every sum is the same whatever the number of cores.
struct KlDivTargetBackwardTiling {
  KlDivTargetBackwardAxis row;
  KlDivTargetBackwardAxis col;
  KlDivTargetBackwardAxis kept[kMaxAxes];     // further out than row, outermost first
  KlDivTargetBackwardAxis reduced[kMaxAxes];  // likewise
  int64_t num_elements[kNumInputs];           // of each input; the output has target's
  int64_t num_items;
  int64_t num_steps;  // 0: sums without terms
  float scale;        // 1/d
  int32_t log_target;
  int32_t num_kept;
  int32_t num_reduced;
  int32_t row_reduced;
  int32_t col_reduced;
  int32_t row_tile;
  int32_t col_tile;
  int32_t pitch;
  int32_t tile_elements;            // of a buffer that holds a tile; a multiple of 64
  int32_t slot_bytes[kNumInputs];   // of one of the two buffers of an input's queue
  int32_t is_constant[kNumInputs];  // the input is the same for every tile: it is copied in once
};

#endif  // OPSERVE_KERNELS_ASCENDC_OP_KERNEL_KL_DIV_TARGET_BACKWARD_TILING_H_
