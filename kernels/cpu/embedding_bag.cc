// A bag is the indices from its offset to the next one. Its rows are taken in their order, in
// float32, so equal inputs give equal bits. An index outside of the table counts as padding; an
// offset below the one before it, or past the indices, counts as that limit, so that no index is in
// two bags whatever the offsets are.
#include "kernels/cpu/embedding_bag.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/index_table.h"
#include "kernels/cpu/plan.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {
namespace {

enum class Mode { kSum, kMean, kMax };

struct BagPlan {
  Mode mode = Mode::kSum;
  int64_t padding = -1;  // an index that is passed over, if not negative
  bool has_end = false;  // the last offset ends the last bag
  int64_t num_rows = 0;  // of the table
  int64_t num_columns = 0;
  int64_t num_indices = 0;
  int64_t num_bags = 0;
  TensorRef weight;
  TensorRef indices;
  TensorRef offsets;
  TensorRef factors;  // of the rows, one for each index
  TensorRef output;
  TensorRef bags;  // of the indices
  TensorRef sizes;
  TensorRef max_indices;
};

// Indices that are looked up at a time, and columns that are computed at a time.
constexpr int64_t kIndices = 256;
constexpr int64_t kColumns = 256;

// starts[i] = the first index of bag i; starts[num_bags] = the end of the last one.
void FindStarts(const BagPlan& plan, const void* const* inputs, int64_t* starts) {
  const int64_t count = plan.num_bags + (plan.has_end ? 1 : 0);
  LoadItems(plan.offsets, inputs, 0, StrideOf(plan.offsets.layout, 0), count, starts);
  int64_t last = 0;
  starts[0] = 0;
  for (int64_t i = 1; i < count; ++i) {
    last = starts[i] = std::clamp(starts[i], last, plan.num_indices);
  }
  if (!plan.has_end) starts[plan.num_bags] = plan.num_indices;
}

// Elements [begin, end) of a vector.
template <typename Number>
void FillRange(const TensorRef& vector, void* const* outputs, int64_t begin, int64_t end,
               int64_t number) {
  auto* const first = static_cast<Number*>(outputs[vector.address]);
  const int64_t stride = StrideOf(vector.layout, 0);
  for (int64_t i = begin; i < end; ++i) first[i * stride] = static_cast<Number>(number);
}

// Rows of the table that are taken in together, in some columns.
template <typename Element>
struct Rows {
  int64_t count = 0;
  const Element* firsts[kIndices];
  float factors[kIndices];
  int64_t indices[kIndices];
};

// Finds the rows of the indices [begin, end), without padding. The factors are 1 if the call has
// none.
template <typename Element>
void FindRows(const BagPlan& plan, const void* const* inputs, const Element* table, int64_t begin,
              int64_t end, Rows<Element>* rows) {
  const int64_t stride = StrideOf(plan.indices.layout, 0);
  const int64_t factor_stride = StrideOf(plan.factors.layout, 0);
  int64_t index_buffer[kIndices];
  float factor_buffer[kIndices];
  const int64_t count = end - begin;
  const int64_t* indices =
      ReadItems(plan.indices, inputs, begin * stride, stride, count, index_buffer);
  const float* factors = nullptr;
  if (plan.factors.is_given()) {
    factors =
        ReadItems(plan.factors, inputs, begin * factor_stride, factor_stride, count, factor_buffer);
  }
  const int64_t row_stride = StrideOf(plan.weight.layout, 0);
  rows->count = 0;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t index = indices[k];
    if (index < 0 || index >= plan.num_rows || index == plan.padding) continue;
    rows->firsts[rows->count] = table + index * row_stride;
    rows->factors[rows->count] = factors == nullptr ? 1.0F : factors[k];
    rows->indices[rows->count] = index;
    ++rows->count;
  }
}

// values = or, if `adds`, += the sum of the rows; then divided. A few registers of columns for all
// rows, which are neighbours.
template <int kRegisters, typename Element>
[[gnu::always_inline]] inline void AddRegisters(const Rows<Element>& rows, int64_t column,
                                                bool adds, float divisor, float* values) {
  float* const first = values + column;
  FloatVector sums[kRegisters];
#pragma GCC unroll 8
  for (int j = 0; j < kRegisters; ++j) sums[j] = adds ? Load(first + j * kLanes) : FloatVector{};
  for (int64_t k = 0; k < rows.count; ++k) {
    const Element* const row = rows.firsts[k] + column;
    const float factor = rows.factors[k];
#pragma GCC unroll 8
    for (int j = 0; j < kRegisters; ++j) sums[j] += factor * Load(row + j * kLanes);
  }
#pragma GCC unroll 8
  for (int j = 0; j < kRegisters; ++j) {
    const FloatVector result = divisor == 1 ? sums[j] : sums[j] / divisor;
    std::memcpy(first + j * kLanes, &result, sizeof(result));
  }
}

// The same of `count` columns, which are `stride` apart.
template <typename Element>
void AddRows(const Rows<Element>& rows, int64_t stride, int64_t count, bool adds, float divisor,
             float* values) {
  constexpr int kRegisters = 8;
  int64_t j = 0;
  if (stride == 1) {
    for (; j + kRegisters * kLanes <= count; j += kRegisters * kLanes) {
      AddRegisters<kRegisters>(rows, j, adds, divisor, values);
    }
    for (; j + kLanes <= count; j += kLanes) AddRegisters<1>(rows, j, adds, divisor, values);
  }
  for (; j < count; ++j) {
    float sum = adds ? values[j] : 0.0F;
    for (int64_t k = 0; k < rows.count; ++k) {
      sum += rows.factors[k] * NumberOf<float>(rows.firsts[k][j * stride]);
    }
    values[j] = sum / divisor;
  }
}

// The greatest elements of the rows, of which it has `size` already, and the rows' indices.
template <typename Element>
void TakeGreatest(const Rows<Element>& rows, int64_t stride, int64_t count, int64_t size,
                  float* __restrict values, int64_t* __restrict indices) {
  float row[kColumns];
  for (int64_t k = 0; k < rows.count; ++k) {
    const int64_t index = rows.indices[k];
    LoadRun(rows.firsts[k], stride, count, row);
    if (size + k == 0) {
      std::copy_n(row, count, values);
      std::fill_n(indices, count, index);
      continue;
    }
    for (int64_t j = 0; j < count; ++j) {
      // NaN is greater than nothing, and nothing is greater than NaN.
      const bool is_greater = row[j] > values[j];
      values[j] = is_greater ? row[j] : values[j];
      indices[j] = is_greater ? index : indices[j];
    }
  }
}

// Columns of the results of a bag.
struct Columns {
  int64_t begin;
  int64_t count;
};

// The indices [begin, end). Returns how many rows are no padding.
template <typename Element>
int64_t ComputeBag(const BagPlan& plan, const void* const* inputs, int64_t begin, int64_t end,
                   const Columns& columns, const TaskRunner& runner, Rows<Element>* rows,
                   float* values, int64_t* max_indices) {
  const int64_t count = columns.count;
  const int64_t stride = StrideOf(plan.weight.layout, 1);
  const auto* const table =
      static_cast<const Element*>(inputs[plan.weight.address]) + columns.begin * stride;
  if (plan.mode == Mode::kMax) {
    std::fill_n(values, count, 0.0F);
    std::fill_n(max_indices, count, int64_t{0});
  }
  int64_t size = 0;
  // Once at least: the sum of no rows is written, too.
  for (int64_t i = begin; i == begin || (i < end && !runner.MustStop()); i += kIndices) {
    FindRows(plan, inputs, table, i, std::min(i + kIndices, end), rows);
    if (plan.mode == Mode::kMax) {
      TakeGreatest(*rows, stride, count, size, values, max_indices);
      size += rows->count;
    } else {
      size += rows->count;
      const bool divides = plan.mode == Mode::kMean && i + kIndices >= end && size > 0;
      AddRows(*rows, stride, count, i > begin, divides ? static_cast<float>(size) : 1.0F, values);
    }
  }
  return size;
}

// The bags [bag, bag_end), in the columns [column, column_end). Number: the outputs' integers.
template <typename Element, typename Number>
void ComputeBags(const BagPlan& plan, const void* const* inputs, void* const* outputs,
                 const int64_t* starts, int64_t bag, int64_t bag_end, int64_t column,
                 int64_t column_end, const TaskRunner& runner) {
  const Layout& out = plan.output.layout;
  const Layout& max = plan.max_indices.layout;
  const int64_t stride = StrideOf(out, 1);
  auto* const output = static_cast<Element*>(outputs[plan.output.address]);
  auto* const max_indices = static_cast<Number*>(outputs[plan.max_indices.address]);
  Rows<Element> rows;
  float buffer[kColumns];
  int64_t indices[kColumns];
  for (int64_t i = bag; i < bag_end; ++i) {
    int64_t size = 0;
    // Once at least: a table without columns has sizes of bags, too.
    for (int64_t from = column; from == column || from < column_end; from += kColumns) {
      const Columns columns{from, std::min(kColumns, column_end - from)};
      Element* const first = output + i * StrideOf(out, 0) + from * stride;
      float* values = buffer;
      if constexpr (std::is_same_v<Element, float>) {
        if (stride == 1) values = first;
      }
      size = ComputeBag<Element>(plan, inputs, starts[i], starts[i + 1], columns, runner, &rows,
                                 values, indices);
      if (values == buffer) StoreRun(values, 1, columns.count, first, stride);
      if (plan.mode == Mode::kMax) {
        StoreRun(indices, 1, columns.count,
                 max_indices + i * StrideOf(max, 0) + from * StrideOf(max, 1), StrideOf(max, 1));
      }
    }
    if (column > 0) continue;
    FillRange<Number>(plan.bags, outputs, starts[i], starts[i + 1], i);
    FillRange<Number>(plan.sizes, outputs, i, i + 1, size);
    if (plan.mode != Mode::kMax) FillRange<Number>(plan.max_indices, outputs, i, i + 1, size);
  }
}

// Calls visit(Element{}, Number{}) with the types of the table and of the outputs' integers.
template <typename Visitor>
void VisitTypes(const BagPlan& plan, Visitor visit) {
  const auto with = [&]<typename Element>(Element element) {
    if (plan.sizes.layout.dtype == Dtype::kInt32) return visit(element, int32_t{});
    return visit(element, int64_t{});
  };
  switch (plan.weight.layout.dtype) {
    case Dtype::kFloat16:
      return with(Half{});
    case Dtype::kBfloat16:
      return with(Bfloat16{});
    default:
      return with(float{});
  }
}

}  // namespace

std::unique_ptr<Kernel> MakeEmbeddingBag(const Call& call) {
  BagPlan plan;
  const int64_t mode = IntAttribute(call, 1);
  plan.mode = mode == 0 ? Mode::kSum : mode == 1 ? Mode::kMean : Mode::kMax;
  plan.has_end = BoolAttribute(call, 3);
  plan.padding = IntAttribute(call, 4, -1);
  plan.weight = InputRef(call, 0);
  plan.indices = InputRef(call, 1);
  plan.offsets = InputRef(call, 2);
  plan.factors = InputRef(call, 3);
  plan.output = OutputRef(call, 0);
  plan.bags = OutputRef(call, 1);
  plan.sizes = OutputRef(call, 2);
  plan.max_indices = OutputRef(call, 3);
  plan.num_rows = ExtentOf(plan.weight.layout, 0);
  plan.num_columns = ExtentOf(plan.weight.layout, 1);
  plan.num_indices = NumElements(plan.indices.layout);
  plan.num_bags = NumElements(plan.sizes.layout);
  // Rows of a bag follow one another: a bag of many is cut into columns.
  const int64_t rows = std::max<int64_t>(1, plan.num_indices / std::max<int64_t>(1, plan.num_bags));
  const int64_t columns =
      std::max<int64_t>(1, std::min(plan.num_columns, std::max(kTaskElements / rows, kColumns)));
  const int64_t bags = PiecesPerTask(std::min(rows, kTaskElements) * columns);
  const int64_t column_parts = std::max<int64_t>(1, CeilDivide(plan.num_columns, columns));
  const int64_t bag_parts = CeilDivide(plan.num_bags, bags);
  // Strides of 0 let few bytes stand for any number of elements.
  int64_t num_elements = 0;
  if (__builtin_mul_overflow(plan.num_indices, plan.num_columns, &num_elements)) {
    num_elements = INT64_MAX;
  }
  return MakePlannedKernel(
      std::max(num_elements, NumElements(plan.output.layout)),
      static_cast<size_t>(plan.num_bags + 1) * sizeof(int64_t),
      [=](const void* const* inputs, void* const* outputs, void* workspace, TaskRunner& runner) {
        auto* const starts = static_cast<int64_t*>(workspace);
        FindStarts(plan, inputs, starts);
        VisitTypes(plan, [&]<typename Element, typename Number>(Element, Number) {
          FillRange<Number>(plan.bags, outputs, starts[plan.num_bags], plan.num_indices,
                            plan.num_bags);
          RunTasks(runner, bag_parts * column_parts, [&](int64_t task) {
            const int64_t bag = task / column_parts * bags;
            const int64_t column = task % column_parts * columns;
            ComputeBags<Element, Number>(plan, inputs, outputs, starts, bag,
                                         std::min(bag + bags, plan.num_bags), column,
                                         std::min(column + columns, plan.num_columns), runner);
          });
        });
      });
}

}  // namespace opserve::kernels
