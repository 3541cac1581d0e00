#include "tests/unit/kernels/test_tensor.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/cpu/convert.h"

namespace opserve::kernels {

int64_t NumElements(const Layout& layout) {
  int64_t count = 1;
  for (int d = 0; d < layout.rank; ++d) count *= layout.shape[d];
  return count;
}

Layout ContiguousLayout(Dtype dtype, const Shape& shape) {
  Layout layout;
  layout.dtype = dtype;
  layout.rank = static_cast<int>(shape.size());
  int64_t stride = 1;
  for (int d = layout.rank - 1; d >= 0; --d) {
    layout.shape[d] = shape[d];
    layout.strides[d] = stride;
    stride *= shape[d];
  }
  return layout;
}

Layout RandomLayout(Dtype dtype, const Shape& shape, bool may_repeat, std::mt19937& random) {
  Layout layout = ContiguousLayout(dtype, shape);
  std::vector<int> axes(shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (random() % 2 == 0) std::shuffle(axes.begin(), axes.end(), random);
  int64_t stride = random() % 4 == 0 ? 2 : 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    layout.strides[*axis] = stride;
    stride *= std::max<int64_t>(1, shape[*axis]);
    if (random() % 4 == 0) stride += random() % 5;
  }
  for (int d = 0; d < layout.rank; ++d) {
    if (may_repeat && random() % 6 == 0) layout.strides[d] = 0;
  }
  return layout;
}

int64_t ElementOffset(const Layout& layout, int64_t index) {
  int64_t offset = 0;
  for (int d = layout.rank - 1; d >= 0; --d) {
    offset += index % layout.shape[d] * layout.strides[d];
    index /= layout.shape[d];
  }
  return offset;
}

TestTensor::TestTensor(const Layout& layout, int64_t offset)
    : layout_(layout), offset_(offset), storage_(nullptr, &std::free) {
  constexpr int64_t kTailElements = 5;
  int64_t elements = offset + 1 + kTailElements;
  for (int d = 0; d < layout.rank; ++d) {
    elements += std::max<int64_t>(0, layout.shape[d] - 1) * layout.strides[d];
  }
  storage_bytes_ = elements * ElementBytes(layout.dtype);
  storage_.reset(static_cast<uint8_t*>(std::aligned_alloc(64, (storage_bytes_ + 63) / 64 * 64)));
  std::memset(storage_.get(), 0xff, storage_bytes_);
}

double TestTensor::Get(int64_t index) const {
  return VisitDtype(layout_.dtype, [&](auto element) -> double {
    const auto* elements = static_cast<const decltype(element)*>(address());
    return Widened(elements[ElementOffset(layout_, index)]);
  });
}

void TestTensor::Set(int64_t index, double value) {
  VisitDtype(layout_.dtype, [&](auto element) {
    using Element = decltype(element);
    Element& stored = static_cast<Element*>(address())[ElementOffset(layout_, index)];
    if constexpr (std::is_same_v<Element, double> || std::is_integral_v<Element>) {
      stored = static_cast<Element>(value);
    } else if constexpr (std::is_same_v<Element, Bool>) {
      stored = Bool{value != 0};
    } else {
      stored = Narrowed<Element>(static_cast<float>(value));
    }
  });
}

void TestTensor::Fill(const std::function<double()>& next) {
  const int64_t count = NumElements(layout_);
  for (int64_t i = 0; i < count; ++i) Set(i, next());
}

bool TestTensor::GuardsAreUntouched() const {
  const int64_t bytes = ElementBytes(layout_.dtype);
  std::vector<bool> is_in_view(storage_bytes_ / bytes);
  const int64_t count = NumElements(layout_);
  for (int64_t i = 0; i < count; ++i) is_in_view[offset_ + ElementOffset(layout_, i)] = true;
  for (int64_t byte = 0; byte < storage_bytes_; ++byte) {
    if (!is_in_view[byte / bytes] && storage_.get()[byte] != 0xff) return false;
  }
  return true;
}

std::vector<uint8_t> TestTensor::Bytes() const {
  return {storage_.get(), storage_.get() + storage_bytes_};
}

}  // namespace opserve::kernels
