#include "kernels/cpu/element_indices.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <variant>

#include "kernels/cpu/call.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/index_table.h"
#include "kernels/cpu/plan.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {
namespace {

// Groups of all axes of the index.
struct ElementPlan {
  TensorRef index;
  AxisGroup indices;
  AxisGroup table;  // without the axis, along which the index moves
  AxisGroup items;
  int64_t extent = 0;  // of the table's axis
  int64_t stride = 0;
  // The index's shape: positions before the axis, along it and behind it.
  int64_t outer = 1;
  int64_t along = 1;
  int64_t inner = 1;
};

// `layout` with another shape.
Layout WithShape(Layout layout, const Layout& shape) {
  layout.shape = shape.shape;
  return layout;
}

ElementPlan MakePlan(const TensorRef& index, const Layout& table, const Layout& items, int axis) {
  ElementPlan plan;
  plan.index = index;
  plan.indices = GroupOf(index.layout);
  Layout places = WithShape(table, index.layout);
  if (axis < places.rank) places.strides[axis] = 0;
  plan.table = GroupOf(places);
  plan.items = GroupOf(WithShape(items, index.layout));
  plan.extent = ExtentOf(table, axis);
  plan.stride = StrideOf(table, axis);
  plan.along = ExtentOf(index.layout, axis);
  for (int d = 0; d < index.layout.rank; ++d) {
    if (d < axis) plan.outer *= index.layout.shape[d];
    if (d > axis) plan.inner *= index.layout.shape[d];
  }
  return plan;
}

// Items at a time.
constexpr int64_t kPart = 512;

// Items that lie equally far apart in all tensors.
struct Items {
  const int64_t* indices;
  int64_t first;   // the place in the table that index 0 of the first item points to
  int64_t offset;  // of the first item
  int64_t count;
};

// Their places in the table, found one by one while items are moved. (All that this needs is in
// members, which stay in registers, whatever is written to.)
// kInLine: the index moves along neighbours, and the first one is the same for all items. Without
// products to compute, most calls take a third less time.
template <bool kInLine>
class Places {
 public:
  Places(const ElementPlan& plan, const Items& items)
      : indices_(items.indices),
        first_(items.first),
        step_(plan.table.inner_stride()),
        extent_(static_cast<uint64_t>(plan.extent)),
        stride_(plan.stride) {}

  // Whether item k has one. As unsigned numbers, those below 0 are the greatest, so that most
  // indices take one comparison.
  [[gnu::always_inline]] bool Find(int64_t k, int64_t* place) const {
    const int64_t given = OneByOne(indices_[k]);
    auto index = static_cast<uint64_t>(given);
    if (index >= extent_) [[unlikely]] {
      index += extent_;
      if (given >= 0 || index >= extent_) return false;
    }
    *place = first_ + static_cast<int64_t>(index) * (kInLine ? 1 : stride_);
    if (!kInLine) *place += k * step_;
    return true;
  }

 private:
  const int64_t* const indices_;
  const int64_t first_;
  const int64_t step_;
  const uint64_t extent_;
  const int64_t stride_;
};

// Calls use(places of the items).
template <typename Use>
void VisitPlaces(const ElementPlan& plan, const Items& items, Use use) {
  if (plan.table.inner_stride() == 0 && plan.stride == 1) {
    use(Places<true>(plan, items));
  } else {
    use(Places<false>(plan, items));
  }
}

// Calls use(items) for parts of the items [begin, end), which are plan.items.inner_stride() apart.
template <typename Use>
void ForEachPart(const ElementPlan& plan, const void* const* inputs, int64_t begin, int64_t end,
                 Use use) {
  if (begin >= end) return;  // an empty group has no position
  AxisCursor indices(plan.indices, begin);
  AxisCursor table(plan.table, begin);
  AxisCursor items(plan.items, begin);
  const int64_t index_stride = plan.indices.inner_stride();
  int64_t buffer[kPart];
  for (int64_t i = begin; i < end;) {
    const int64_t count = std::min({indices.run(), table.run(), items.run(), end - i, kPart});
    use(Items{ReadItems(plan.index, inputs, indices.offset(), index_stride, count, buffer),
              table.offset(), items.offset(), count});
    indices.Advance(count);
    table.Advance(count);
    items.Advance(count);
    i += count;
  }
}

template <typename Element>
void ReadItems(const ElementPlan& plan, const Items& items, const Element* table, Element* out) {
  Element* const first = out + items.offset;
  const int64_t stride = plan.items.inner_stride();
  VisitPlaces(plan, items, [&](auto places) {
    const auto read = [&](int64_t k) {
      int64_t place;
      return places.Find(k, &place) ? table[place] : Element{};
    };
    int64_t k = 0;
    if (stride == 1) {  // several are stored at once
      constexpr int kTogether = 4;
      for (; k + kTogether <= items.count; k += kTogether) {
        Element elements[kTogether];
#pragma GCC unroll 4
        for (int j = 0; j < kTogether; ++j) elements[j] = read(k + j);
        std::memcpy(first + k, elements, sizeof(elements));
      }
    }
    for (; k < items.count; ++k) first[k * stride] = read(k);
  });
}

}  // namespace

std::unique_ptr<Kernel> MakeGather(const Call& call) {
  const TensorRef self = InputRef(call, 0);
  const TensorRef out = OutputRef(call, 0);
  const int axis = AxisAttribute(IntAttribute(call, 0), out.layout.rank);
  const ElementPlan plan = MakePlan(InputRef(call, 1), self.layout, out.layout, axis);
  const int64_t count = NumElements(plan.index.layout);
  return MakePlannedKernel(
      count, 0,
      [=](const void* const* inputs, void* const* outputs, void* /*workspace*/,
          TaskRunner& runner) {
        RunTasks(runner, CeilDivide(count, kTaskElements), [&](int64_t task) {
          const int64_t begin = task * kTaskElements;
          VisitAnyElement(out.layout.dtype, [&]<typename Element>(Element) {
            const auto* table = static_cast<const Element*>(inputs[self.address]);
            auto* items = static_cast<Element*>(outputs[out.address]);
            ForEachPart(plan, inputs, begin, std::min(begin + kTaskElements, count),
                        [&](const Items& part) { ReadItems(plan, part, table, items); });
          });
        });
      });
}

namespace {

// Writes the items [begin, end) to the table at `address`; without items `value`.
template <typename Element>
void WriteItems(const ElementPlan& plan, Write write, const TensorRef& items, const Scalar& value,
                const void* const* inputs, void* address, int64_t begin, int64_t end) {
  using C = NumberFor<Element>;
  C copies[kPart];
  if (!items.is_given()) std::fill_n(copies, kPart, NumberOf<C>(value));
  auto* table = static_cast<Element*>(address);
  ForEachPart(plan, inputs, begin, end, [&](const Items& part) {
    const C* values = copies;
    if (items.is_given()) {
      values = ReadItems(items, inputs, part.offset, plan.items.inner_stride(), part.count, copies);
    }
    VisitPlaces(plan, part, [&](auto places) {
      VisitWrite(write, [&](auto kind) {
#pragma GCC unroll 4
        for (int64_t k = 0; k < part.count; ++k) {
          int64_t place;
          if (!places.Find(k, &place)) continue;
          Element& element = table[place];
          element = ElementOf<Element>(Combined(kind(), NumberOf<C>(element), values[k]));
        }
      });
    });
  });
}

std::unique_ptr<Kernel> MakeScatterOf(const Call& call, Write write, const TensorRef& source,
                                      const Scalar& value) {
  const TensorRef out = OutputRef(call, 0);
  const TensorRef index = InputRef(call, 1);
  const int axis = AxisAttribute(IntAttribute(call, 0), out.layout.rank);
  const WrittenTable table(write, InputRef(call, 0), out);
  const ElementPlan plan =
      MakePlan(index, table.table().layout, source.is_given() ? source.layout : index.layout, axis);
  // Items that may meet stay in one task: it has whole blocks of `along` x `inner` items, or, where
  // these are too large, a range of the positions behind the axis.
  const int64_t block = plan.along * plan.inner;
  const int64_t blocks = PiecesPerTask(block);
  const int64_t width = block <= kTaskElements
                            ? plan.inner
                            : std::clamp<int64_t>(kTaskElements / plan.along, 1, plan.inner);
  const int64_t parts = CeilDivide(plan.inner, std::max<int64_t>(1, width));
  return MakePlannedKernel(
      std::max(NumElements(out.layout), NumElements(index.layout)), table.workspace_bytes(),
      [=](const void* const* inputs, void* const* outputs, void* workspace, TaskRunner& runner) {
        table.Run(inputs, outputs, workspace, runner, [&](void* address) {
          RunTasks(runner, CeilDivide(plan.outer, blocks) * parts, [&](int64_t task) {
            VisitAnyElement(table.table().layout.dtype, [&]<typename Element>(Element) {
              const auto write_items = [&](int64_t begin, int64_t end) {
                WriteItems<Element>(plan, write, source, value, inputs, address, begin, end);
              };
              const int64_t first = task / parts * blocks;
              const int64_t last = std::min(first + blocks, plan.outer);
              if (parts == 1) return write_items(first * block, last * block);
              const int64_t column = task % parts * width;
              const int64_t column_end = std::min(column + width, plan.inner);
              for (int64_t row = first * plan.along; row < last * plan.along; ++row) {
                if (row % 1024 == 1023 && runner.MustStop()) return;
                write_items(row * plan.inner + column, row * plan.inner + column_end);
              }
            });
          });
        });
      });
}

Write WriteAttribute(const Call& call, size_t attribute) {
  const int64_t reduce = IntAttribute(call, attribute);
  return reduce == 1 ? Write::kAdd : reduce == 2 ? Write::kMultiply : Write::kReplace;
}

}  // namespace

std::unique_ptr<Kernel> MakeScatter(const Call& call) {
  return MakeScatterOf(call, WriteAttribute(call, 1), InputRef(call, 2), {});
}
std::unique_ptr<Kernel> MakeScatterAdd(const Call& call) {
  return MakeScatterOf(call, Write::kAdd, InputRef(call, 2), {});
}
std::unique_ptr<Kernel> MakeScatterValue(const Call& call) {
  const auto* value = std::get_if<Scalar>(&call.attributes[1]);
  return MakeScatterOf(call, WriteAttribute(call, 2), {}, value == nullptr ? Scalar{} : *value);
}

}  // namespace opserve::kernels
