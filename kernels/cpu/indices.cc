// Reading and writing at indices.
//
// Such a call is a matrix of items, the source or the result of the copies: an item's row (and for
// some operators its column) has indices into a table, its column the rest of the place there. A
// negative index counts from the end; what lies outside is read as 0 and written nowhere. Items
// that meet at one place are taken in the order of their rows.
#include <algorithm>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/cpu/call.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/plan.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {
namespace {

enum class Write { kReplace, kAdd, kMultiply };

// A tensor of indices into one axis of the table.
struct IndexAxis {
  Dtype dtype = Dtype::kInt64;
  int address = -1;
  AxisGroup rows;
  AxisGroup columns;
  int64_t extent = 0;  // of the table's axis
  int64_t stride = 0;
  int64_t offset = 0;  // of the first index in its tensor
};

struct IndexPlan {
  int64_t num_rows = 1;
  int64_t num_columns = 1;
  std::vector<IndexAxis> axes;
  int64_t skipped = -1;  // an index that is passed over, if not negative
  TensorRef table;
  AxisGroup table_columns;
  TensorRef items;  // may be left out: `value` then
  AxisGroup item_rows;
  AxisGroup item_columns;
  Scalar value;
  Scalar alpha = {Dtype::kFloat, 1, 1};
};

constexpr int64_t kOutside = -1;

// Where in the table the indices of an item point to.
int64_t PlaceOf(const IndexPlan& plan, const void* const* inputs, int64_t row, int64_t column) {
  int64_t place = 0;
  for (const IndexAxis& axis : plan.axes) {
    const int64_t offset = axis.offset + AxisCursor(axis.rows, row).offset() +
                           AxisCursor(axis.columns, column).offset();
    int64_t index = LoadNumber<int64_t>(axis.dtype, inputs[axis.address], offset);
    if (plan.skipped >= 0 && index == plan.skipped) return kOutside;
    if (index < 0) index += axis.extent;
    if (index < 0 || index >= axis.extent) return kOutside;
    place += index * axis.stride;
  }
  return place;
}

bool HasIndexColumns(const IndexPlan& plan) {
  return std::any_of(plan.axes.begin(), plan.axes.end(),
                     [](const IndexAxis& axis) { return !axis.columns.is_broadcast(); });
}

// Calls run(place or kOutside, column, offsets in the table and in the items, count) for the
// columns [begin, end) of a row.
template <typename Run>
void ForEachRun(const IndexPlan& plan, const void* const* inputs, int64_t row, int64_t begin,
                int64_t end, bool has_columns, Run run) {
  AxisCursor table(plan.table_columns, begin);
  AxisCursor items(plan.item_columns, begin);
  const int64_t item_row = AxisCursor(plan.item_rows, row).offset();
  int64_t place = has_columns ? 0 : PlaceOf(plan, inputs, row, 0);
  for (int64_t i = begin; i < end;) {
    int64_t count = std::min({table.run(), items.run(), end - i});
    if (has_columns) {
      place = PlaceOf(plan, inputs, row, i);
      count = 1;
    }
    run(place == kOutside ? kOutside : place + table.offset(), item_row + items.offset(), count);
    table.Advance(count);
    items.Advance(count);
    i += count;
  }
}

// Copies from the table to the items, which are an output.
std::unique_ptr<Kernel> MakeReader(const IndexPlan& plan) {
  const int64_t columns = std::min(plan.num_columns, kTaskElements);
  const int64_t rows = std::min(plan.num_rows, PiecesPerTask(columns));
  const int64_t column_parts = CeilDivide(plan.num_columns, std::max<int64_t>(1, columns));
  const int64_t row_parts = CeilDivide(plan.num_rows, std::max<int64_t>(1, rows));
  const bool has_columns = HasIndexColumns(plan);
  return MakePlannedKernel(
      plan.num_rows * plan.num_columns, 0,
      [=](const void* const* inputs, void* const* outputs, void* /*workspace*/,
          TaskRunner& runner) {
        const int64_t from_stride = plan.table_columns.inner_stride();
        const int64_t to_stride = plan.item_columns.inner_stride();
        RunTasks(runner, row_parts * column_parts, [&](int64_t task) {
          const int64_t row = task / column_parts * rows;
          const int64_t column = task % column_parts * columns;
          const int64_t row_end = std::min(row + rows, plan.num_rows);
          const int64_t column_end = std::min(column + columns, plan.num_columns);
          VisitAnyElement(plan.items.layout.dtype, [&]<typename Element>(Element) {
            const auto* from = static_cast<const Element*>(inputs[plan.table.address]);
            auto* to = static_cast<Element*>(outputs[plan.items.address]);
            for (int64_t i = row; i < row_end; ++i) {
              ForEachRun(plan, inputs, i, column, column_end, has_columns,
                         [&](int64_t place, int64_t item, int64_t count) {
                           for (int64_t j = 0; j < count; ++j) {
                             to[item + j * to_stride] =
                                 place == kOutside ? Element{} : from[place + j * from_stride];
                           }
                         });
            }
          });
        });
      });
}

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

// Writes the items' columns [begin, end) to the table at `address`.
template <typename Element>
void WriteColumns(const IndexPlan& plan, Write write, const void* const* inputs, void* address,
                  const double* factors, int64_t begin, int64_t end, const TaskRunner& runner) {
  using C = NumberFor<Element>;
  constexpr int64_t kRun = 256;
  C values[kRun];
  const bool has_columns = HasIndexColumns(plan);
  const bool has_items = plan.items.is_given();
  const C alpha = NumberOf<C>(plan.alpha);
  auto* table = static_cast<Element*>(address);
  if (!has_items) std::fill_n(values, kRun, NumberOf<C>(plan.value));
  for (int64_t i = 0; i < plan.num_rows; ++i) {
    if (i % 1024 == 1023 && runner.MustStop()) return;
    ForEachRun(
        plan, inputs, i, begin, end, has_columns, [&](int64_t place, int64_t item, int64_t count) {
          if (place == kOutside) return;
          for (int64_t j = 0; j < count; j += kRun) {
            const int64_t part = std::min(kRun, count - j);
            if (has_items) {
              VisitAnyElement(plan.items.layout.dtype, [&]<typename Item>(Item) {
                const int64_t stride = plan.item_columns.inner_stride();
                LoadRun(static_cast<const Item*>(inputs[plan.items.address]) + item + j * stride,
                        stride, part, values);
              });
            }
            C factor = alpha;
            if (factors != nullptr) factor = static_cast<C>(factors[i]);
            if (factor != C{1}) {
              for (int64_t k = 0; k < part; ++k) {
                values[k] = Combined(Write::kMultiply, values[k], factor);
              }
            }
            const int64_t stride = plan.table_columns.inner_stride();
            for (int64_t k = 0; k < part; ++k) {
              Element& element = table[place + (j + k) * stride];
              element = ElementOf<Element>(Combined(write, NumberOf<C>(element), values[k]));
            }
          }
        });
  }
}

bool IsHalf(Dtype dtype) { return dtype == Dtype::kFloat16 || dtype == Dtype::kBfloat16; }

// How often the index of each row occurs, turned over.
void FactorsOf(const IndexPlan& plan, const void* const* inputs, int64_t* counts, double* factors) {
  const IndexAxis& axis = plan.axes[0];
  std::fill_n(counts, axis.extent, int64_t{0});
  for (int64_t i = 0; i < plan.num_rows; ++i) {
    const int64_t place = PlaceOf(plan, inputs, i, 0);
    if (place != kOutside && axis.stride > 0) ++counts[place / axis.stride];
  }
  for (int64_t i = 0; i < plan.num_rows; ++i) {
    const int64_t place = PlaceOf(plan, inputs, i, 0);
    factors[i] = place == kOutside || axis.stride == 0
                     ? 0.0
                     : 1.0 / static_cast<double>(counts[place / axis.stride]);
  }
}

// Writes the items to the table, an output that begins as `self` or, if that is left out, as 0.
// Halves that meet are added up as floats. `by_frequency`: items are divided by how often their
// index occurs.
std::unique_ptr<Kernel> MakeWriter(IndexPlan plan, Write write, const TensorRef& self,
                                   const TensorRef& out, bool by_frequency = false) {
  const int64_t count = NumElements(out.layout);
  Piece begin = self.is_given() ? MakePiece(self, out) : MakeFill(out, 0);
  Piece finish;
  const bool widens = write != Write::kReplace && IsHalf(out.layout.dtype);
  plan.table = out;
  if (widens) {
    // The same in the workspace, contiguous: every stride of the table is found again by its axis.
    TensorRef sums = out;
    sums.layout.dtype = Dtype::kFloat;
    int64_t stride = 1;
    for (int d = out.layout.rank - 1; d >= 0; --d) {
      sums.layout.strides[d] = stride;
      stride *= out.layout.shape[d];
    }
    plan.table = sums;
    if (self.is_given()) {
      begin = MakePiece(self, sums);
    } else {
      begin = MakeFill(sums, 0);
    }
    begin.output = 0;
    sums.address = 0;
    finish = MakePiece(sums, out);
  }
  PreparePiece(begin);
  PreparePiece(finish);
  const size_t sum_bytes = widens ? (static_cast<size_t>(count) * 4 + 63) / 64 * 64 : 0;
  const size_t count_bytes =
      by_frequency ? static_cast<size_t>(plan.axes[0].extent + plan.num_rows) * 8 : 0;
  // Rows follow one another: only columns are cut.
  const int64_t width =
      std::clamp<int64_t>(kTaskElements / std::max<int64_t>(1, plan.num_rows), 16, kTaskElements);
  return MakePlannedKernel(
      std::max(count, plan.num_rows * plan.num_columns), sum_bytes + count_bytes,
      [=](const void* const* inputs, void* const* outputs, void* workspace, TaskRunner& runner) {
        void* const sums[] = {workspace};
        const bool is_in_place =
            self.is_given() && inputs[self.address] == outputs[out.address] && !widens;
        if (!is_in_place) RunPiece(begin, inputs, widens ? sums : outputs, runner);
        double* factors = nullptr;
        if (by_frequency) {
          auto* counts = reinterpret_cast<int64_t*>(static_cast<char*>(workspace) + sum_bytes);
          factors = reinterpret_cast<double*>(counts + plan.axes[0].extent);
          FactorsOf(plan, inputs, counts, factors);
        }
        void* address = widens ? workspace : outputs[out.address];
        RunTasks(runner, CeilDivide(plan.num_columns, width), [&](int64_t task) {
          const int64_t first = task * width;
          const int64_t last = std::min(first + width, plan.num_columns);
          VisitAnyElement(plan.table.layout.dtype, [&]<typename Element>(Element) {
            WriteColumns<Element>(plan, write, inputs, address, factors, first, last, runner);
          });
        });
        const void* const read[] = {workspace};
        if (widens) RunPiece(finish, read, outputs, runner);
      });
}

// The strides that MakeWriter gives the table: contiguous where halves are added up as floats.
Layout WrittenLayout(const Layout& out, Write write) {
  Layout layout = out;
  if (write == Write::kReplace || !IsHalf(out.dtype)) return layout;
  int64_t stride = 1;
  for (int d = out.rank - 1; d >= 0; --d) {
    layout.strides[d] = stride;
    stride *= out.shape[d];
  }
  return layout;
}

// `layout` with another shape.
Layout WithShape(Layout layout, const Layout& shape) {
  layout.shape = shape.shape;
  return layout;
}

// --- One index for each element: gather and scatter.

// Rows are the positions along the axis, columns those along the others.
IndexPlan PlanElements(const TensorRef& index, const Layout& table, const Layout& items, int axis) {
  IndexPlan plan;
  plan.num_rows = ExtentOf(index.layout, axis);
  plan.num_columns = NumElements(index.layout) / std::max<int64_t>(1, plan.num_rows);
  plan.axes = {
      {index.layout.dtype, index.address, OneAxis(plan.num_rows, StrideOf(index.layout, axis)),
       GroupOf(WithoutAxis(index.layout, axis)), ExtentOf(table, axis), StrideOf(table, axis)}};
  plan.table_columns = GroupOf(WithoutAxis(WithShape(table, index.layout), axis));
  plan.item_rows = OneAxis(plan.num_rows, StrideOf(items, axis));
  plan.item_columns = GroupOf(WithoutAxis(WithShape(items, index.layout), axis));
  return plan;
}

std::unique_ptr<Kernel> MakeGather(const Call& call) {
  const TensorRef self = InputRef(call, 0);
  const TensorRef out = OutputRef(call, 0);
  const int axis = AxisAttribute(IntAttribute(call, 0), out.layout.rank);
  IndexPlan plan = PlanElements(InputRef(call, 1), self.layout, out.layout, axis);
  plan.table = self;
  plan.items = out;
  return MakeReader(plan);
}

std::unique_ptr<Kernel> MakeScatterOf(const Call& call, Write write, const TensorRef& source,
                                      const Scalar& value) {
  const TensorRef out = OutputRef(call, 0);
  const TensorRef index = InputRef(call, 1);
  const int axis = AxisAttribute(IntAttribute(call, 0), out.layout.rank);
  IndexPlan plan = PlanElements(index, WrittenLayout(out.layout, write),
                                source.is_given() ? source.layout : index.layout, axis);
  plan.items = source;
  plan.value = value;
  return MakeWriter(std::move(plan), write, InputRef(call, 0), out);
}

Write WriteAttribute(const Call& call, size_t attribute) {
  const int64_t reduce = IntAttribute(call, attribute);
  return reduce == 1 ? Write::kAdd : reduce == 2 ? Write::kMultiply : Write::kReplace;
}

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

// --- One index for each slice.

// `items` has the index's axes in the place of the table's axis; the rows are those of the index.
IndexPlan PlanSlices(const TensorRef& index, const Layout& table, const Layout& items, int axis) {
  const int rank = index.layout.rank;
  IndexPlan plan;
  plan.num_rows = NumElements(index.layout);
  plan.axes = {{index.layout.dtype,
                index.address,
                GroupOf(index.layout),
                {},
                ExtentOf(table, axis),
                StrideOf(table, axis)}};
  plan.table_columns = GroupOf(WithoutAxis(table, axis));
  plan.item_rows = GroupOf(items, axis, axis + rank);
  plan.item_columns = JoinGroups(GroupOf(items, 0, axis), GroupOf(items, axis + rank, items.rank));
  const int64_t extent = ExtentOf(table, axis);
  plan.num_columns = extent == 0 ? 0 : NumElements(table) / extent;
  return plan;
}

std::unique_ptr<Kernel> MakeSelectAlong(const Call& call, int axis) {
  const TensorRef self = InputRef(call, 0);
  const TensorRef out = OutputRef(call, 0);
  IndexPlan plan = PlanSlices(InputRef(call, 1), self.layout, out.layout, axis);
  plan.table = self;
  plan.items = out;
  return MakeReader(plan);
}
std::unique_ptr<Kernel> MakeIndexSelect(const Call& call) {
  return MakeSelectAlong(call, AxisAttribute(IntAttribute(call, 0), Input(call, 0).rank));
}
std::unique_ptr<Kernel> MakeEmbedding(const Call& call) { return MakeSelectAlong(call, 0); }

std::unique_ptr<Kernel> MakeIndexAdd(const Call& call) {
  const TensorRef out = OutputRef(call, 0);
  const TensorRef source = InputRef(call, 2);
  const int axis = AxisAttribute(IntAttribute(call, 0), out.layout.rank);
  IndexPlan plan =
      PlanSlices(InputRef(call, 1), WrittenLayout(out.layout, Write::kAdd), source.layout, axis);
  plan.items = source;
  if (const auto* alpha = std::get_if<Scalar>(&call.attributes[1])) plan.alpha = *alpha;
  return MakeWriter(std::move(plan), Write::kAdd, InputRef(call, 0), out);
}

std::unique_ptr<Kernel> MakeEmbeddingDenseBackward(const Call& call) {
  const TensorRef out = OutputRef(call, 0);
  const TensorRef grad = InputRef(call, 0);
  const TensorRef index = InputRef(call, 1);
  const Layout table = WrittenLayout(out.layout, Write::kAdd);
  IndexPlan plan = PlanSlices(index, table, grad.layout, 0);
  // The gradient may have the index's axes as one.
  plan.item_rows = GroupOf(grad.layout, 0, grad.layout.rank - 1);
  plan.item_columns = GroupOf(grad.layout, grad.layout.rank - 1, grad.layout.rank);
  plan.items = grad;
  plan.skipped = IntAttribute(call, 1);
  return MakeWriter(std::move(plan), Write::kAdd, {}, out, BoolAttribute(call, 2));
}

// --- Indices for several axes.

// The list has a tensor for each leading axis, an empty one where the axis is taken as a whole.
// The indices' common shape stands where their axes stood if those are neighbours, else in front.
IndexPlan PlanList(const std::vector<TensorRef>& indices, const Layout& table, const Layout& items,
                   bool items_are_broadcast) {
  std::vector<int> indexed;
  std::vector<int> kept;
  int index_rank = 0;
  for (int d = 0; d < table.rank; ++d) {
    const size_t i = static_cast<size_t>(d);
    if (i < indices.size() && NumElements(indices[i].layout) > 0) {
      indexed.push_back(d);
      index_rank = std::max(index_rank, indices[i].layout.rank);
    } else {
      kept.push_back(d);
    }
  }
  Layout shape;  // the indices' common one
  shape.rank = index_rank;
  std::fill_n(shape.shape.begin(), index_rank, 1);
  for (const int d : indexed) {
    const Layout& layout = indices[d].layout;
    for (int k = 0; k < layout.rank; ++k) {
      int64_t& extent = shape.shape[k + index_rank - layout.rank];
      extent = std::max(extent, layout.shape[k]);
    }
  }
  const bool are_neighbours =
      !indexed.empty() && indexed.back() - indexed.front() + 1 == static_cast<int>(indexed.size());
  const int before = are_neighbours ? indexed.front() : 0;

  IndexPlan plan;
  plan.num_rows = NumElements(shape);
  for (const int d : indexed) {
    plan.axes.push_back({indices[d].layout.dtype,
                         indices[d].address,
                         GroupOf(BroadcastTo(indices[d].layout, shape)),
                         {},
                         table.shape[d],
                         table.strides[d]});
  }
  // The shape of the items.
  Layout whole;
  whole.rank = index_rank + static_cast<int>(kept.size());
  Layout columns;
  columns.rank = static_cast<int>(kept.size());
  for (size_t k = 0; k < kept.size(); ++k) {
    const int place =
        static_cast<int>(k) < before ? static_cast<int>(k) : static_cast<int>(k) + index_rank;
    whole.shape[place] = table.shape[kept[k]];
    columns.shape[k] = table.shape[kept[k]];
    columns.strides[k] = table.strides[kept[k]];
  }
  for (int k = 0; k < index_rank; ++k) whole.shape[before + k] = shape.shape[k];
  const Layout view = items_are_broadcast ? BroadcastTo(items, whole) : items;
  plan.num_columns = NumElements(columns);
  plan.table_columns = GroupOf(columns);
  plan.item_rows = GroupOf(view, before, before + index_rank);
  plan.item_columns =
      JoinGroups(GroupOf(view, 0, before), GroupOf(view, before + index_rank, view.rank));
  return plan;
}

std::unique_ptr<Kernel> MakeIndex(const Call& call) {
  const TensorRef self = InputRef(call, 0);
  const TensorRef out = OutputRef(call, 0);
  IndexPlan plan = PlanList(InputRefs(call, 1), self.layout, out.layout, false);
  plan.table = self;
  plan.items = out;
  return MakeReader(plan);
}

std::unique_ptr<Kernel> MakeIndexPut(const Call& call) {
  const TensorRef out = OutputRef(call, 0);
  const TensorRef values = InputRef(call, 2);
  const Write write = BoolAttribute(call, 0) ? Write::kAdd : Write::kReplace;
  IndexPlan plan =
      PlanList(InputRefs(call, 1), WrittenLayout(out.layout, write), values.layout, true);
  plan.items = values;
  return MakeWriter(std::move(plan), write, InputRef(call, 0), out);
}

// Every row along the last axis of `index` points into the leading axes of the table.
IndexPlan PlanPoints(const TensorRef& index, const Layout& table, const Layout& items) {
  const int last = index.layout.rank - 1;
  const int depth = static_cast<int>(std::min<int64_t>(index.layout.shape[last], table.rank));
  IndexPlan plan;
  plan.num_rows = NumElements(WithoutAxis(index.layout, last));
  for (int k = 0; k < depth; ++k) {
    plan.axes.push_back({index.layout.dtype,
                         index.address,
                         GroupOf(index.layout, 0, last),
                         {},
                         table.shape[k],
                         table.strides[k],
                         k * index.layout.strides[last]});
  }
  plan.table_columns = GroupOf(table, depth, table.rank);
  plan.num_columns = 1;
  for (int d = depth; d < table.rank; ++d) plan.num_columns *= table.shape[d];
  plan.item_rows = GroupOf(items, 0, last);
  plan.item_columns = GroupOf(items, last, items.rank);
  return plan;
}

std::unique_ptr<Kernel> MakeGatherNd(const Call& call) {
  const TensorRef self = InputRef(call, 0);
  const TensorRef out = OutputRef(call, 0);
  IndexPlan plan = PlanPoints(InputRef(call, 1), self.layout, out.layout);
  plan.table = self;
  plan.items = out;
  return MakeReader(plan);
}

std::unique_ptr<Kernel> MakeScatterNdUpdate(const Call& call) {
  const TensorRef out = OutputRef(call, 0);
  const TensorRef updates = InputRef(call, 2);
  IndexPlan plan = PlanPoints(InputRef(call, 1), out.layout, updates.layout);
  plan.items = updates;
  return MakeWriter(std::move(plan), Write::kReplace, InputRef(call, 0), out);
}

}  // namespace

std::span<const KernelEntry> IndexKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnEmbedding", &MakeEmbedding},
      {"aclnnEmbeddingDenseBackward", &MakeEmbeddingDenseBackward},
      {"aclnnGather", &MakeGather},
      {"aclnnGatherNd", &MakeGatherNd},
      {"aclnnGatherV2", &MakeIndexSelect},
      {"aclnnInplaceScatter", &MakeScatter},
      {"aclnnInplaceScatterValue", &MakeScatterValue},
      {"aclnnIndex", &MakeIndex},
      {"aclnnIndexAdd", &MakeIndexAdd},
      {"aclnnIndexPutImpl", &MakeIndexPut},
      {"aclnnIndexSelect", &MakeIndexSelect},
      {"aclnnScatter", &MakeScatter},
      {"aclnnScatterAdd", &MakeScatterAdd},
      {"aclnnScatterNdUpdate", &MakeScatterNdUpdate},
      {"aclnnScatterValue", &MakeScatterValue},
  };
  return kEntries;
}

}  // namespace opserve::kernels
