// Convolutions of groups with one channel each, of images that are narrower than a vector: vectors
// are of one place of several channels.
#pragma once

#include <memory>

#include "kernels/cpu/depthwise_plan.h"
#include "kernels/cpu/kernel.h"

namespace opserve::kernels {

// As MakeDepthwise, whose conditions are met. Null: images that lines suit better.
std::unique_ptr<Kernel> MakeNarrowDepthwise(const DepthwiseConvolution& convolution);

}  // namespace opserve::kernels
