// Reading and writing slices at indices; element_indices.cc has single elements, embedding_bag.cc
// sums of slices.
//
// Such a call is a matrix of items, the source or the result of the copies: an item's row has
// indices into a table, its column the rest of the place there. A negative index counts from the
// end; an index outside is read as 0 and written nowhere. Items that meet at one place are taken in
// the order of their rows.
#include <algorithm>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/cpu/call.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/element_indices.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/embedding_bag.h"
#include "kernels/cpu/index_table.h"
#include "kernels/cpu/plan.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {
namespace {

// A tensor of indices into one axis of the table.
struct IndexAxis {
  Dtype dtype = Dtype::kInt64;
  int address = -1;
  AxisGroup rows;
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
  TensorRef items;
  AxisGroup item_rows;
  AxisGroup item_columns;
  Scalar alpha = {Dtype::kFloat, 1, 1};
};

// Rows whose places are looked up at a time.
constexpr int64_t kPlaces = 256;

// places[i] = where in the table the indices of row `begin` + i point to, for `count` <= kPlaces
// rows.
void FindPlaces(const IndexPlan& plan, const void* const* inputs, int64_t begin, int64_t count,
                int64_t* places) {
  int64_t indices[kPlaces];
  std::fill_n(places, count, int64_t{0});
  for (const IndexAxis& axis : plan.axes) {
    AxisCursor rows(axis.rows, begin);
    for (int64_t i = 0; i < count;) {
      const int64_t run = std::min(rows.run(), count - i);
      VisitAnyElement(axis.dtype, [&]<typename Index>(Index) {
        LoadRun(static_cast<const Index*>(inputs[axis.address]) + axis.offset + rows.offset(),
                axis.rows.inner_stride(), run, indices + i);
      });
      rows.Advance(run);
      i += run;
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = indices[i] < 0 ? indices[i] + axis.extent : indices[i];
      const bool is_skipped = plan.skipped >= 0 && indices[i] == plan.skipped;
      const bool is_outside = is_skipped || index < 0 || index >= axis.extent;
      places[i] = is_outside || places[i] == kOutside ? kOutside : places[i] + index * axis.stride;
    }
  }
}

// Calls use(row, its place or kOutside) for the rows [begin, end).
template <typename Use>
void ForEachPlace(const IndexPlan& plan, const void* const* inputs, int64_t begin, int64_t end,
                  Use use) {
  int64_t places[kPlaces];
  for (int64_t i = begin; i < end; i += kPlaces) {
    const int64_t count = std::min(kPlaces, end - i);
    FindPlaces(plan, inputs, i, count, places);
    for (int64_t k = 0; k < count; ++k) use(i + k, places[k]);
  }
}

// Calls run(place or kOutside, offset in the items, count) for the columns [begin, end) of a row
// whose place is `place` and whose items begin at `item_row`.
template <typename Run>
void ForEachRun(const IndexPlan& plan, int64_t place, int64_t item_row, int64_t begin, int64_t end,
                Run run) {
  if (plan.table_columns.rank == 1 && plan.item_columns.rank == 1) {
    // Most rows are one run; to find it with cursors takes as long as to copy a short one.
    return run(place == kOutside ? kOutside : place + begin * plan.table_columns.strides[0],
               item_row + begin * plan.item_columns.strides[0], end - begin);
  }
  AxisCursor table(plan.table_columns, begin);
  AxisCursor items(plan.item_columns, begin);
  for (int64_t i = begin; i < end;) {
    const int64_t count = std::min({table.run(), items.run(), end - i});
    run(place == kOutside ? kOutside : place + table.offset(), item_row + items.offset(), count);
    table.Advance(count);
    items.Advance(count);
    i += count;
  }
}

// Copies rows [row, row_end) of one column each.
template <typename Element>
void ReadElements(const IndexPlan& plan, const void* const* inputs, const Element* from,
                  int64_t row, int64_t row_end, Element* to) {
  int64_t places[kPlaces];
  AxisCursor items(plan.item_rows, row);
  const int64_t stride = plan.item_rows.inner_stride();
  for (int64_t i = row; i < row_end;) {
    const int64_t count = std::min({items.run(), row_end - i, kPlaces});
    FindPlaces(plan, inputs, i, count, places);
    Element* const first = to + items.offset();
    for (int64_t k = 0; k < count; ++k) {
      first[k * stride] = places[k] == kOutside ? Element{} : from[places[k]];
    }
    items.Advance(count);
    i += count;
  }
}

// Whether every row is one run of neighbours, in the table and among the items.
bool HasLines(const IndexPlan& plan) {
  const auto is_line = [](const AxisGroup& columns) {
    return columns.rank == 1 && columns.strides[0] == 1;
  };
  return is_line(plan.table_columns) && is_line(plan.item_columns);
}

// Copies the columns [column, column_end) of the rows [row, row_end) from the table; each is a run.
template <typename Element>
void ReadLines(const IndexPlan& plan, const void* const* inputs, const Element* from, int64_t row,
               int64_t row_end, int64_t column, int64_t column_end, Element* to) {
  const int64_t count = column_end - column;
  AxisCursor items(plan.item_rows, row);
  ForEachPlace(plan, inputs, row, row_end, [&](int64_t /*row*/, int64_t place) {
    Element* const first = to + items.offset() + column;
    if (place == kOutside) {
      std::fill_n(first, count, Element{});
    } else {
      std::copy_n(from + place + column, count, first);
    }
    items.Advance(1);
  });
}

// Copies the columns [column, column_end) of the rows [row, row_end) from the table of any layout.
template <typename Element>
void ReadSlices(const IndexPlan& plan, const void* const* inputs, const Element* from, int64_t row,
                int64_t row_end, int64_t column, int64_t column_end, Element* to) {
  const int64_t from_stride = plan.table_columns.inner_stride();
  const int64_t to_stride = plan.item_columns.inner_stride();
  AxisCursor items(plan.item_rows, row);
  ForEachPlace(plan, inputs, row, row_end, [&](int64_t /*row*/, int64_t slice) {
    ForEachRun(plan, slice, items.offset(), column, column_end,
               [&](int64_t place, int64_t item, int64_t count) {
                 Element* const first = to + item;
                 if (place == kOutside) {
                   for (int64_t j = 0; j < count; ++j) first[j * to_stride] = Element{};
                 } else if (from_stride == 1 && to_stride == 1) {
                   std::copy_n(from + place, count, first);
                 } else {
                   for (int64_t j = 0; j < count; ++j) {
                     first[j * to_stride] = from[place + j * from_stride];
                   }
                 }
               });
    items.Advance(1);
  });
}

// Copies from the table to the items, which are an output.
std::unique_ptr<Kernel> MakeReader(const IndexPlan& plan) {
  const int64_t columns = std::min(plan.num_columns, kTaskElements);
  const int64_t rows = std::min(plan.num_rows, PiecesPerTask(columns));
  const int64_t column_parts = CeilDivide(plan.num_columns, std::max<int64_t>(1, columns));
  const int64_t row_parts = CeilDivide(plan.num_rows, std::max<int64_t>(1, rows));
  return MakePlannedKernel(
      plan.num_rows * plan.num_columns, 0,
      [=](const void* const* inputs, void* const* outputs, void* /*workspace*/,
          TaskRunner& runner) {
        RunTasks(runner, row_parts * column_parts, [&](int64_t task) {
          const int64_t row = task / column_parts * rows;
          const int64_t column = task % column_parts * columns;
          const int64_t row_end = std::min(row + rows, plan.num_rows);
          const int64_t column_end = std::min(column + columns, plan.num_columns);
          VisitAnyElement(plan.items.layout.dtype, [&]<typename Element>(Element) {
            const auto* from = static_cast<const Element*>(inputs[plan.table.address]);
            auto* to = static_cast<Element*>(outputs[plan.items.address]);
            if (plan.num_columns == 1) {
              ReadElements(plan, inputs, from, row, row_end, to);
            } else if (HasLines(plan)) {
              ReadLines(plan, inputs, from, row, row_end, column, column_end, to);
            } else {
              ReadSlices(plan, inputs, from, row, row_end, column, column_end, to);
            }
          });
        });
      });
}

// Writes the items' columns [begin, end) to the table at `address`.
template <typename Element>
void WriteColumns(const IndexPlan& plan, Write write, const void* const* inputs, void* address,
                  const double* factors, int64_t begin, int64_t end, const TaskRunner& runner) {
  using C = NumberFor<Element>;
  constexpr int64_t kRun = 256;
  C buffer[kRun];
  const C alpha = NumberOf<C>(plan.alpha);
  const int64_t item_stride = plan.item_columns.inner_stride();
  auto* table = static_cast<Element*>(address);
  if (plan.num_rows == 0) return;
  bool must_stop = false;
  AxisCursor items(plan.item_rows, 0);
  ForEachPlace(plan, inputs, 0, plan.num_rows, [&](int64_t i, int64_t slice) {
    must_stop = must_stop || (i % 1024 == 1023 && runner.MustStop());
    const int64_t item_row = items.offset();
    items.Advance(1);
    if (slice == kOutside || must_stop) return;
    const C factor = factors == nullptr ? alpha : static_cast<C>(factors[i]);
    ForEachRun(plan, slice, item_row, begin, end, [&](int64_t place, int64_t item, int64_t count) {
      for (int64_t j = 0; j < count; j += kRun) {
        const int64_t part = std::min(kRun, count - j);
        const C* values =
            ReadItems(plan.items, inputs, item + j * item_stride, item_stride, part, buffer);
        if (factor != C{1}) {
          for (int64_t k = 0; k < part; ++k) {
            buffer[k] = Combined(Write::kMultiply, values[k], factor);
          }
          values = buffer;
        }
        const int64_t stride = plan.table_columns.inner_stride();
        Element* const first = table + place + j * stride;
        VisitWrite(write, [&](auto kind) {
          if (stride == 1) {  // a loop of its own, which becomes vectors
            OPSERVE_INDEPENDENT_ITERATIONS
            for (int64_t k = 0; k < part; ++k) {
              first[k] = ElementOf<Element>(Combined(kind(), NumberOf<C>(first[k]), values[k]));
            }
          } else {
            for (int64_t k = 0; k < part; ++k) {
              Element& element = first[k * stride];
              element = ElementOf<Element>(Combined(kind(), NumberOf<C>(element), values[k]));
            }
          }
        });
      }
    });
  });
}

// How often the index of each row occurs, turned over.
void FactorsOf(const IndexPlan& plan, const void* const* inputs, int64_t* counts, double* factors) {
  const IndexAxis& axis = plan.axes[0];
  std::fill_n(counts, axis.extent, int64_t{0});
  ForEachPlace(plan, inputs, 0, plan.num_rows, [&](int64_t /*row*/, int64_t place) {
    if (place != kOutside && axis.stride > 0) ++counts[place / axis.stride];
  });
  ForEachPlace(plan, inputs, 0, plan.num_rows, [&](int64_t row, int64_t place) {
    factors[row] = place == kOutside || axis.stride == 0
                       ? 0.0
                       : 1.0 / static_cast<double>(counts[place / axis.stride]);
  });
}

// Writes the items to the table, an output that begins as `self` or, if that is left out, as 0.
// `by_frequency`: items are divided by how often their index occurs.
std::unique_ptr<Kernel> MakeWriter(IndexPlan plan, Write write, const TensorRef& self,
                                   const TensorRef& out, bool by_frequency = false) {
  const WrittenTable table(write, self, out);
  plan.table = table.table();
  const size_t sum_bytes = table.workspace_bytes();
  const size_t count_bytes =
      by_frequency ? static_cast<size_t>(plan.axes[0].extent + plan.num_rows) * 8 : 0;
  // Rows follow one another: only columns are cut, and not into parts that cost less than to find
  // their places.
  const int64_t width =
      std::clamp<int64_t>(kTaskElements / std::max<int64_t>(1, plan.num_rows), 256, kTaskElements);
  return MakePlannedKernel(
      std::max(NumElements(out.layout), plan.num_rows * plan.num_columns), sum_bytes + count_bytes,
      [=](const void* const* inputs, void* const* outputs, void* workspace, TaskRunner& runner) {
        double* factors = nullptr;
        if (by_frequency) {
          auto* counts = reinterpret_cast<int64_t*>(static_cast<char*>(workspace) + sum_bytes);
          factors = reinterpret_cast<double*>(counts + plan.axes[0].extent);
          FactorsOf(plan, inputs, counts, factors);
        }
        table.Run(inputs, outputs, workspace, runner, [&](void* address) {
          RunTasks(runner, CeilDivide(plan.num_columns, width), [&](int64_t task) {
            const int64_t first = task * width;
            const int64_t last = std::min(first + width, plan.num_columns);
            VisitAnyElement(plan.table.layout.dtype, [&]<typename Element>(Element) {
              WriteColumns<Element>(plan, write, inputs, address, factors, first, last, runner);
            });
          });
        });
      });
}

// --- One index for each slice.

// `items` has the index's axes in the place of the table's axis; the rows are those of the index.
IndexPlan PlanSlices(const TensorRef& index, const Layout& table, const Layout& items, int axis) {
  const int rank = index.layout.rank;
  IndexPlan plan;
  plan.num_rows = NumElements(index.layout);
  plan.axes = {{index.layout.dtype, index.address, GroupOf(index.layout), ExtentOf(table, axis),
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
  IndexPlan plan = PlanSlices(InputRef(call, 1), WrittenTable::LayoutOf(out.layout, Write::kAdd),
                              source.layout, axis);
  plan.items = source;
  if (const auto* alpha = std::get_if<Scalar>(&call.attributes[1])) plan.alpha = *alpha;
  return MakeWriter(std::move(plan), Write::kAdd, InputRef(call, 0), out);
}

std::unique_ptr<Kernel> MakeEmbeddingDenseBackward(const Call& call) {
  const TensorRef out = OutputRef(call, 0);
  const TensorRef grad = InputRef(call, 0);
  const TensorRef index = InputRef(call, 1);
  const Layout table = WrittenTable::LayoutOf(out.layout, Write::kAdd);
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
    plan.axes.push_back({indices[d].layout.dtype, indices[d].address,
                         GroupOf(BroadcastTo(indices[d].layout, shape)), table.shape[d],
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
      PlanList(InputRefs(call, 1), WrittenTable::LayoutOf(out.layout, write), values.layout, true);
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
    plan.axes.push_back({index.layout.dtype, index.address, GroupOf(index.layout, 0, last),
                         table.shape[k], table.strides[k], k * index.layout.strides[last]});
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
      {"aclnnEmbeddingBag", &MakeEmbeddingBag},
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
