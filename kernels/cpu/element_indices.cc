#include "kernels/cpu/element_indices.h"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "kernels/cpu/call.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/index_table.h"
#include "kernels/cpu/plan.h"
#include "kernels/cpu/simd.h"
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
constexpr int64_t kPart = 256;

// Calls use(places in the table or kOutside, offset of the first item, count) for parts of the
// items [begin, end), which are plan.items.inner_stride() apart.
template <typename Use>
void ForEachPart(const ElementPlan& plan, const void* const* inputs, int64_t begin, int64_t end,
                 Use use) {
  if (begin >= end) return;  // an empty group has no position
  AxisCursor indices(plan.indices, begin);
  AxisCursor table(plan.table, begin);
  AxisCursor items(plan.items, begin);
  const int64_t index_stride = plan.indices.inner_stride();
  const int64_t table_stride = plan.table.inner_stride();
  // Indices that lie as they are read need no copy.
  const bool is_direct = plan.index.layout.dtype == Dtype::kInt64 && index_stride == 1;
  int64_t places[kPart];
  for (int64_t i = begin; i < end;) {
    const int64_t count = std::min({indices.run(), table.run(), items.run(), end - i, kPart});
    const int64_t* given = places;
    if (is_direct) {
      given = static_cast<const int64_t*>(inputs[plan.index.address]) + indices.offset();
    } else {
      LoadItems(plan.index, inputs, indices.offset(), index_stride, count, places);
    }
    const int64_t first = table.offset();
    const int64_t extent = plan.extent;
    const int64_t stride = plan.stride;
    OPSERVE_INDEPENDENT_ITERATIONS
    for (int64_t k = 0; k < count; ++k) {
      const int64_t index = given[k] < 0 ? given[k] + extent : given[k];
      // As unsigned numbers, those below 0 are the greatest.
      const bool is_outside = static_cast<uint64_t>(index) >= static_cast<uint64_t>(extent);
      places[k] = is_outside ? kOutside : first + k * table_stride + index * stride;
    }
    use(static_cast<const int64_t*>(places), items.offset(), count);
    indices.Advance(count);
    table.Advance(count);
    items.Advance(count);
    i += count;
  }
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
            const int64_t stride = plan.items.inner_stride();
            ForEachPart(plan, inputs, begin, std::min(begin + kTaskElements, count),
                        [&](const int64_t* places, int64_t item, int64_t part) {
                          Element* const first = items + item;
                          const auto read = [&](int64_t k) {
                            return places[k] == kOutside ? Element{} : table[places[k]];
                          };
                          if (stride == 1) {
                            for (int64_t k = 0; k < part; ++k) first[k] = read(k);
                          } else {
                            for (int64_t k = 0; k < part; ++k) first[k * stride] = read(k);
                          }
                        });
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
  C values[kPart];
  if (!items.is_given()) std::fill_n(values, kPart, NumberOf<C>(value));
  auto* table = static_cast<Element*>(address);
  ForEachPart(plan, inputs, begin, end, [&](const int64_t* places, int64_t item, int64_t count) {
    if (items.is_given()) {
      LoadItems(items, inputs, item, plan.items.inner_stride(), count, values);
    }
    VisitWrite(write, [&](auto kind) {
      for (int64_t k = 0; k < count; ++k) {
        const int64_t place = OnePlace(places[k]);
        if (place == kOutside) continue;
        Element& element = table[place];
        element = ElementOf<Element>(Combined(kind(), NumberOf<C>(element), values[k]));
      }
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
