// Tensors for the kernel tests: any layout, in storage whose other bytes are guarded.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "kernels/cpu/kernel.h"

namespace opserve::kernels {

using Shape = std::vector<int64_t>;

int64_t NumElements(const Layout& layout);

// Row-major without gaps.
Layout ContiguousLayout(Dtype dtype, const Shape& shape);

// Axes in any order in memory, with gaps; with `may_repeat` also strides of 0.
Layout RandomLayout(Dtype dtype, const Shape& shape, bool may_repeat, std::mt19937& random);

// Elements from the layout's address to element `index` (row-major) of it.
int64_t ElementOffset(const Layout& layout, int64_t index);

class TestTensor {
 public:
  // The storage has `offset` elements before the view and some after it. All bytes are 0xff, which
  // reads as NaN in every dtype.
  explicit TestTensor(const Layout& layout, int64_t offset = 0);

  const Layout& layout() const { return layout_; }
  void* address() const { return storage_.get() + offset_ * ElementBytes(layout_.dtype); }

  // Element `index` (row-major) of the view. Set rounds to nearest even.
  double Get(int64_t index) const;
  void Set(int64_t index, double value);
  void Fill(const std::function<double()>& next);

  // Whether all bytes outside the view are 0xff still.
  bool GuardsAreUntouched() const;
  // All bytes of the storage.
  std::vector<uint8_t> Bytes() const;

 private:
  Layout layout_;
  int64_t offset_;
  int64_t storage_bytes_;
  std::unique_ptr<uint8_t, decltype(&std::free)> storage_;
};

}  // namespace opserve::kernels
