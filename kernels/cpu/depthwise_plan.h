// What the kernels of convolutions of groups with one channel share (depthwise.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/depthwise.h"
#include "kernels/cpu/simd.h"

namespace opserve::kernels {

// Elements of images that are in memory as float at a time, and elements of a window.
inline constexpr int64_t kMostImageElements = int64_t{64} << 10;
inline constexpr int64_t kMostTaps = 256;

inline FloatVector LoadVector(const float* from) {
  FloatVector vector;
  std::memcpy(&vector, from, sizeof(vector));
  return vector;
}

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
};

// As many units of `products` products each as make a task.
inline int64_t UnitsPerTask(int64_t products) {
  constexpr int64_t kTaskProducts = int64_t{1} << 21;
  return std::max<int64_t>(1, kTaskProducts / std::max<int64_t>(1, products));
}

}  // namespace opserve::kernels
