// Convolutions of groups with one channel each, and the gradients of their windows. A product of
// matrices would have one row for each group; here lines of an image are multiplied by one weight
// at a time, and lines of results stay in registers; of narrow images, one place of several
// channels at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/plan.h"

namespace opserve::kernels {

// Axes of images and windows, y and x. Images along one line have an axis y of extent 1.
using Plane = std::array<int64_t, 2>;

// Images [batches, channels, plane] with zeros around, and between, their elements: element i of an
// axis lies at begin + i * step.
struct ZeroedImages {
  TensorRef tensor;  // of rank 3 or 4
  Plane begin = {};
  Plane step = {1, 1};
};

// Place p of a result sees p * stride + k * dilation of the images, for element k of the window.
struct DepthwiseWindows {
  Plane extents = {1, 1};
  Plane stride = {1, 1};
  Plane dilation = {1, 1};
};

// out[n, c, p] = bias[c] + the sum over k of weight[c, 0, k] * images[n, c, seen by p]; where
// `is_backwards`, k counts the weights from their last one. `bias` may be left out. As float.
//
// Null: dtypes or windows for which a product of matrices is better.
std::unique_ptr<Kernel> MakeDepthwise(const ZeroedImages& images, const DepthwiseWindows& windows,
                                      const TensorRef& weight, bool is_backwards,
                                      const TensorRef& bias, const TensorRef& out);

// out[c, 0, k] = the sum over n and p of gradient[n, c, p] * images[n, c, seen by p]. Sums of parts
// of lines are added up as float64. Null: as above.
std::unique_ptr<Kernel> MakeDepthwiseWeight(const ZeroedImages& images,
                                            const DepthwiseWindows& windows,
                                            const TensorRef& gradient, const TensorRef& out);

}  // namespace opserve::kernels
