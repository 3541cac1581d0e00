// A bag is the indices from its offset to the next one. Its rows are taken in their order, in
// float32, so equal inputs give equal bits. An index outside of the table counts as padding; an
// offset below the one before it, or past the indices, counts as that limit, so that no index is in
// two bags whatever the offsets are.
#include "kernels/cpu/embedding_bag.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/elements.h"
#include "kernels/cpu/index_table.h"
#include "kernels/cpu/plan.h"
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

// What a bag comes to in some columns.
struct Result {
  int64_t size = 0;           // rows that are no padding
  float values[kColumns];     // their sum or the greatest
  int64_t indices[kColumns];  // where the greatest is
};

// What is read for it.
struct Operands {
  int64_t indices[kIndices];
  float factors[kIndices];
  float row[kColumns];
};

// Takes in a row.
void TakeRow(Mode mode, const float* __restrict row, int64_t count, float factor, int64_t index,
             Result* __restrict result) {
  if (mode != Mode::kMax) {
    for (int64_t j = 0; j < count; ++j) result->values[j] += factor * row[j];
  } else if (result->size == 0) {
    std::copy_n(row, count, result->values);
    std::fill_n(result->indices, count, index);
  } else {
    for (int64_t j = 0; j < count; ++j) {
      // NaN is greater than nothing, and nothing is greater than NaN.
      const bool is_greater = row[j] > result->values[j];
      result->values[j] = is_greater ? row[j] : result->values[j];
      result->indices[j] = is_greater ? index : result->indices[j];
    }
  }
  ++result->size;
}

// The indices [begin, end), in `count` columns from `column` on. The factors are 1 if the call has
// none.
template <typename Element>
void ComputeBag(const BagPlan& plan, const void* const* inputs, int64_t begin, int64_t end,
                int64_t column, int64_t count, const TaskRunner& runner, Operands* operands,
                Result* result) {
  result->size = 0;
  std::fill_n(result->values, count, 0.0F);
  std::fill_n(result->indices, count, int64_t{0});
  const int64_t row_stride = StrideOf(plan.weight.layout, 0);
  const int64_t stride = StrideOf(plan.weight.layout, 1);
  const int64_t index_stride = StrideOf(plan.indices.layout, 0);
  const int64_t factor_stride = StrideOf(plan.factors.layout, 0);
  const auto* const table = static_cast<const Element*>(inputs[plan.weight.address]);
  const Element* const first = table + column * stride;
  for (int64_t i = begin; i < end && !runner.MustStop(); i += kIndices) {
    const int64_t part = std::min(kIndices, end - i);
    LoadItems(plan.indices, inputs, i * index_stride, index_stride, part, operands->indices);
    if (plan.factors.is_given()) {
      LoadItems(plan.factors, inputs, i * factor_stride, factor_stride, part, operands->factors);
    }
    for (int64_t k = 0; k < part; ++k) {
      const int64_t index = operands->indices[k];
      if (index < 0 || index >= plan.num_rows || index == plan.padding) continue;
      const Element* const row = first + index * row_stride;
      const float factor = operands->factors[k];
      if constexpr (std::is_same_v<Element, float>) {
        if (stride == 1) {
          TakeRow(plan.mode, row, count, factor, index, result);
          continue;
        }
      }
      LoadRun(row, stride, count, operands->row);
      TakeRow(plan.mode, operands->row, count, factor, index, result);
    }
  }
  if (plan.mode == Mode::kMean && result->size > 0) {
    const auto size = static_cast<float>(result->size);
    for (int64_t j = 0; j < count; ++j) result->values[j] /= size;
  }
}

// The bags [bag, bag_end), in the columns [column, column_end). Number: the outputs' integers.
template <typename Element, typename Number>
void ComputeBags(const BagPlan& plan, const void* const* inputs, void* const* outputs,
                 const int64_t* starts, int64_t bag, int64_t bag_end, int64_t column,
                 int64_t column_end, const TaskRunner& runner) {
  const Layout& out = plan.output.layout;
  const Layout& max = plan.max_indices.layout;
  auto* const output = static_cast<Element*>(outputs[plan.output.address]);
  auto* const max_indices = static_cast<Number*>(outputs[plan.max_indices.address]);
  Result result;
  Operands operands;
  std::fill_n(operands.factors, kIndices, 1.0F);
  for (int64_t i = bag; i < bag_end; ++i) {
    // Once at least: a table without columns has sizes of bags, too.
    for (int64_t from = column; from == column || from < column_end; from += kColumns) {
      const int64_t count = std::min(kColumns, column_end - from);
      ComputeBag<Element>(plan, inputs, starts[i], starts[i + 1], from, count, runner, &operands,
                          &result);
      StoreRun(result.values, 1, count, output + i * StrideOf(out, 0) + from * StrideOf(out, 1),
               StrideOf(out, 1));
      if (plan.mode == Mode::kMax) {
        StoreRun(result.indices, 1, count,
                 max_indices + i * StrideOf(max, 0) + from * StrideOf(max, 1), StrideOf(max, 1));
      }
    }
    if (column > 0) continue;
    FillRange<Number>(plan.bags, outputs, starts[i], starts[i + 1], i);
    FillRange<Number>(plan.sizes, outputs, i, i + 1, result.size);
    if (plan.mode != Mode::kMax) {
      FillRange<Number>(plan.max_indices, outputs, i, i + 1, result.size);
    }
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
