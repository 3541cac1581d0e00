// Blocks of the factors of products of matrices, as strips of lines that are computed together, and
// the offsets of elements, of which factors and results are made.
#pragma once

#include <cstdint>

#include "kernels/cpu/iteration.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/simd.h"

namespace opserve::kernels {

// The depth that is packed at a time: so much stays in the second-level cache.
inline constexpr int64_t kBlockDepth = 256;

// Registers have kStripRows x two vectors of sums at a time. AVX-512 has twice as many registers.
inline constexpr int kStripRows = sizeof(FloatVector) == 64 ? 12 : 6;
template <typename C>
inline constexpr int kStripColumns = 2 * sizeof(FloatVector) / sizeof(C);

// offsets[i] = offset of position begin + i.
void OffsetsOf(const AxisGroup& group, int64_t begin, int64_t count, int64_t* offsets);

// Whether offsets[i] is offsets[0] + i.
bool AreNeighbours(const int64_t* offsets, int64_t count);

// Offsets that are equally far apart: `count` of them from position `begin` on.
struct OffsetRun {
  int64_t begin;
  int64_t count;
  int64_t stride;
};

// Elements of a run, on average, that make it worth being looked at as one.
inline constexpr int64_t kLeastRun = 4;

// Finds the runs of offsets: as many as `most`, else none.
int64_t FindRuns(const int64_t* offsets, int64_t count, int64_t most, OffsetRun* runs);

// Packs a block as strips of kWidth lines: strip after strip, and in each all lines' first
// elements, all lines' second elements and so on. Lines are rows of the left factor or columns of
// the right one. The last strip is filled up with its last line.
//
// kWidth is kStripRows or kStripColumns<C>, C is float, double or uint64_t. `lines` and `steps`:
// offsets of the lines' first elements, and of elements from these; at most kBlockDepth steps.
template <int kWidth, typename C>
void Pack(const ProductOperand& operand, const void* address, const int64_t* lines,
          int64_t num_lines, const int64_t* steps, int64_t depth, C* packed);

}  // namespace opserve::kernels
