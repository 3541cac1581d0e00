// Where along an axis the greatest or least element is.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/cpu/kernel.h"

namespace opserve::kernels {

// The kernel of a call with one input and the outputs values and indices, or only indices: of the
// first of the greatest (or least) elements along the axis whose bit `axes` has. A NaN is both.
std::unique_ptr<Kernel> MakeArgReduceKernel(const Call& call, uint32_t axes, bool is_greatest);

}  // namespace opserve::kernels
