// The table that operators write items to at indices: an output that begins as a copy of an input.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/plan.h"

namespace opserve::kernels {

// A place in the table for an index that points past its ends.
inline constexpr int64_t kOutside = -1;

// `index`, for loops that move single elements: the compiler may not make vectors of them, as
// loading or storing elements all over memory as vectors takes longer than one by one.
[[gnu::always_inline]] inline int64_t OneByOne(int64_t index) {
#ifdef __GNUC__
  __asm__("" : "+r"(index));
#endif
  return index;
}

// What writing does with the element that is there.
enum class Write { kReplace, kAdd, kMultiply };

// What elements are combined in.
template <typename Element>
using NumberFor = std::conditional_t<
    std::is_same_v<Element, double>, double,
    std::conditional_t<std::is_integral_v<Element> || std::is_same_v<Element, BoolByte>, int64_t,
                       float>>;

template <typename C>
C Combined(Write write, C old, C value) {
  if constexpr (std::is_integral_v<C>) {
    const auto a = static_cast<uint64_t>(old);
    const auto b = static_cast<uint64_t>(value);
    return static_cast<C>(write == Write::kAdd ? a + b : write == Write::kMultiply ? a * b : b);
  } else {
    return write == Write::kAdd ? old + value : write == Write::kMultiply ? old * value : value;
  }
}

// Calls use(kind), where kind() is `write` as a constant.
template <typename Use>
void VisitWrite(Write write, Use use) {
  switch (write) {
    case Write::kReplace:
      return use(std::integral_constant<Write, Write::kReplace>{});
    case Write::kAdd:
      return use(std::integral_constant<Write, Write::kAdd>{});
    case Write::kMultiply:
      return use(std::integral_constant<Write, Write::kMultiply>{});
  }
}

// values[k] = the element at `offset` + k * stride of a tensor.
template <typename C>
void LoadItems(const TensorRef& items, const void* const* inputs, int64_t offset, int64_t stride,
               int64_t count, C* values) {
  VisitAnyElement(items.layout.dtype, [&]<typename Item>(Item) {
    LoadRun(static_cast<const Item*>(inputs[items.address]) + offset, stride, count, values);
  });
}

// The same numbers: where they lie if they do so as they are read, otherwise in `buffer`.
template <typename C>
const C* ReadItems(const TensorRef& items, const void* const* inputs, int64_t offset,
                   int64_t stride, int64_t count, C* buffer) {
  if (items.layout.dtype == kDtypeOf<C> && stride == 1) {
    return static_cast<const C*>(inputs[items.address]) + offset;
  }
  LoadItems(items, inputs, offset, stride, count, buffer);
  return buffer;
}

// The output `out`, which begins as `self` or, if that is left out, as 0. Halves that are combined
// are floats in the workspace until all items are written.
class WrittenTable {
 public:
  WrittenTable(Write write, const TensorRef& self, const TensorRef& out)
      : self_(self), out_(out), widens_(Widens(write, out.layout.dtype)), table_(out) {
    table_.layout = LayoutOf(out.layout, write);
    if (widens_) table_.address = 0;
    begin_ = self.is_given() ? MakePiece(self, table_) : MakeFill(table_, 0);
    if (widens_) {
      begin_.output = 0;
      finish_ = MakePiece(table_, out);
    }
    PreparePiece(begin_);
    PreparePiece(finish_);
  }

  // Layout of what is written to: contiguous floats for halves, the output's otherwise.
  static Layout LayoutOf(const Layout& out, Write write) {
    Layout layout = out;
    if (!Widens(write, out.dtype)) return layout;
    layout.dtype = Dtype::kFloat;
    int64_t stride = 1;
    for (int d = out.rank - 1; d >= 0; --d) {
      layout.strides[d] = stride;
      stride *= out.shape[d];
    }
    return layout;
  }

  const TensorRef& table() const { return table_; }
  // Of the beginning of the workspace.
  size_t workspace_bytes() const {
    return widens_ ? (static_cast<size_t>(NumElements(out_.layout)) * 4 + 63) / 64 * 64 : 0;
  }

  // Calls write(address of the table) between the two copies.
  template <typename WriteItems>
  void Run(const void* const* inputs, void* const* outputs, void* workspace, TaskRunner& runner,
           WriteItems write) const {
    void* const sums[] = {workspace};
    const bool is_in_place =
        self_.is_given() && inputs[self_.address] == outputs[out_.address] && !widens_;
    if (!is_in_place) RunPiece(begin_, inputs, widens_ ? sums : outputs, runner);
    write(widens_ ? workspace : outputs[out_.address]);
    const void* const read[] = {workspace};
    if (widens_) RunPiece(finish_, read, outputs, runner);
  }

 private:
  static bool Widens(Write write, Dtype dtype) {
    return write != Write::kReplace && (dtype == Dtype::kFloat16 || dtype == Dtype::kBfloat16);
  }

  const TensorRef self_;
  const TensorRef out_;
  const bool widens_;
  TensorRef table_;
  Piece begin_;
  Piece finish_;
};

}  // namespace opserve::kernels
