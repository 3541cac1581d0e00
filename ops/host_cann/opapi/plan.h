// From checked arguments to what kernels are planned with.
#pragma once

#include <cstdint>

#include "kernels/cpu/kernel.h"
#include "ops/host_cann/nnopbase/tensor.h"

namespace opserve::host_cann {

// The kernels' view of a tensor of type FLOAT, FLOAT16, BF16 or DOUBLE and rank up to 8.
kernels::Layout MakeLayout(const aclTensor& tensor);

// What a forward loss's reduction may be, if it has no batchmean: from none to sum.
inline constexpr int64_t kNoReduction = 0;
inline constexpr int64_t kSumReduction = 2;

// The divisor that a forward loss's reduction puts into its gradient, `shape` being the shape of
// the unreduced loss: for mean (1) its number of elements, for batchmean (3) its first extent (1 if
// there is none), else 1. Never 0: of a loss without elements there is nothing to divide.
double ReductionDivisor(int64_t reduction, const Shape& shape);

}  // namespace opserve::host_cann
