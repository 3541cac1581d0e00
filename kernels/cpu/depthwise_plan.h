// What the kernels of convolutions of groups with one channel share (depthwise.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/depthwise.h"
#include "kernels/cpu/elements.h"

namespace opserve::kernels {

// Elements of images that are in memory as float at a time, and elements of a window.
inline constexpr int64_t kMostImageElements = int64_t{64} << 10;
inline constexpr int64_t kMostTaps = 256;

// The axes y and x of a tensor.
struct PlaneAxes {
  explicit PlaneAxes(const Layout& layout)
      : extents{layout.rank > 3 ? layout.shape[2] : 1, layout.shape[layout.rank - 1]},
        strides{layout.rank > 3 ? layout.strides[2] : 0, layout.strides[layout.rank - 1]} {}

  // Whether an image's elements lie side by side.
  bool are_dense() const {
    return strides[1] == 1 && (strides[0] == extents[1] || extents[0] == 1);
  }

  Plane extents;
  Plane strides;
};

struct DepthwiseConvolution {
  ZeroedImages images;
  DepthwiseWindows windows;
  TensorRef weight;
  bool is_backwards;
  TensorRef bias;
  TensorRef out;

  int64_t num_taps() const { return windows.extents[0] * windows.extents[1]; }
};

// A channel's weights in the order in which results meet them, `pitch` apart.
inline void LoadTaps(const DepthwiseConvolution& convolution, const void* const* inputs,
                     int64_t channel, float* weights, int64_t pitch) {
  const Plane& extents = convolution.windows.extents;
  const Layout& layout = convolution.weight.layout;
  const PlaneAxes axes(layout);
  const int64_t last = convolution.num_taps() - 1;
  VisitAnyElement(layout.dtype, [&]<typename Element>(Element) {
    const auto* elements = static_cast<const Element*>(inputs[convolution.weight.address]) +
                           channel * layout.strides[0];
    for (int64_t i = 0; i < extents[0]; ++i) {
      for (int64_t j = 0; j < extents[1]; ++j) {
        const int64_t tap = i * extents[1] + j;
        weights[(convolution.is_backwards ? last - tap : tap) * pitch] =
            NumberOf<float>(elements[i * axes.strides[0] + j * axes.strides[1]]);
      }
    }
  });
}

// 0 where there is none.
inline float LoadBias(const DepthwiseConvolution& convolution, const void* const* inputs,
                      int64_t channel) {
  const TensorRef& bias = convolution.bias;
  if (!bias.is_given()) return 0;
  return LoadNumber<float>(bias.layout.dtype, inputs[bias.address],
                           channel * bias.layout.strides[0]);
}

// As many units of `products` products each as make a task.
inline int64_t UnitsPerTask(int64_t products) {
  constexpr int64_t kTaskProducts = int64_t{1} << 21;
  return std::max<int64_t>(1, kTaskProducts / std::max<int64_t>(1, products));
}

}  // namespace opserve::kernels
