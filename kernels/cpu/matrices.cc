// Matrix products.
#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>

#include "kernels/cpu/call.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/formula.h"
#include "kernels/cpu/plan.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {
namespace {

Scalar ScalarAttribute(const Call& call, size_t attribute) {
  if (attribute < call.attributes.size()) {
    const Attribute& value = call.attributes[attribute];
    if (const auto* scalar = std::get_if<Scalar>(&value)) return *scalar;
    if (const auto* real = std::get_if<double>(&value)) return {Dtype::kDouble, *real, 0};
  }
  return {Dtype::kFloat, 1, 1};
}

// Axis `axis` of a layout; negative: an axis of extent 1 that it does not have.
AxisGroup AxisOf(const Layout& layout, int axis) {
  return axis < 0 ? AxisGroup{} : GroupOf(layout, axis, axis + 1);
}

ProductOperand OperandOf(const TensorRef& tensor, AxisGroup batches, AxisGroup rows,
                         AxisGroup columns) {
  ProductOperand operand;
  operand.dtype = tensor.layout.dtype;
  operand.address = tensor.address;
  operand.batches = batches;
  operand.rows = rows;
  operand.columns = columns;
  return operand;
}

// The leading axes of `shape`, `num_axes` of them, as those of a layout that is broadcast to them
// with its own `own_axes` leading ones.
AxisGroup BatchesOf(const Layout& layout, int own_axes, const Layout& shape, int num_axes) {
  Layout own = layout;
  own.rank = own_axes;
  Layout target = shape;
  target.rank = num_axes;
  return GroupOf(BroadcastTo(own, target));
}

// `added` is broadcast to the result.
Product MakeProduct(const TensorRef& left, const TensorRef& right, const TensorRef& added,
                    const TensorRef& out) {
  const int left_rank = left.layout.rank;
  const int right_rank = right.layout.rank;
  const int left_axis = left_rank > 1 ? left_rank - 2 : -1;
  const int right_axis = right_rank > 1 ? right_rank - 1 : -1;
  const int num_axes = out.layout.rank - (left_axis >= 0 ? 1 : 0) - (right_axis >= 0 ? 1 : 0);
  const int row_axis = left_axis >= 0 ? num_axes : -1;
  const int column_axis = right_axis >= 0 ? out.layout.rank - 1 : -1;

  Product product;
  product.depth = left.layout.shape[left_rank - 1];
  if (left_axis >= 0) product.num_rows = left.layout.shape[left_axis];
  if (right_axis >= 0) product.num_columns = right.layout.shape[right_axis];
  for (int d = 0; d < num_axes; ++d) product.num_batches *= out.layout.shape[d];
  product.left =
      OperandOf(left, BatchesOf(left.layout, std::max(left_rank - 2, 0), out.layout, num_axes),
                AxisOf(left.layout, left_axis), AxisOf(left.layout, left_rank - 1));
  product.right = OperandOf(
      right, BatchesOf(right.layout, std::max(right_rank - 2, 0), out.layout, num_axes),
      AxisOf(right.layout, right_axis >= 0 ? right_rank - 2 : 0), AxisOf(right.layout, right_axis));
  product.out = OperandOf(out, GroupOf(out.layout, 0, num_axes), AxisOf(out.layout, row_axis),
                          AxisOf(out.layout, column_axis));
  if (added.is_given()) {
    const Layout layout = BroadcastTo(added.layout, out.layout);
    product.added = OperandOf(added, GroupOf(layout, 0, num_axes), AxisOf(layout, row_axis),
                              AxisOf(layout, column_axis));
  }
  if (product.right.batches.is_broadcast() && product.num_batches > 1) {
    // One right factor for all: the batches are rows.
    product.num_rows *= product.num_batches;
    product.num_batches = 1;
    for (ProductOperand* operand : {&product.left, &product.added, &product.out}) {
      operand->rows = JoinGroups(operand->batches, operand->rows);
      operand->batches = {};
    }
    product.right.batches = {};
  }
  return product;
}

std::unique_ptr<Kernel> MakeMatmul(const Call& call) {
  return MakeProductKernel(
      MakeProduct(InputRef(call, 0), InputRef(call, 1), {}, OutputRef(call, 0)));
}

// `kAlpha`, `kBeta`: which attributes these are.
template <size_t kAlpha, size_t kBeta>
std::unique_ptr<Kernel> MakeAdded(const Call& call) {
  Product product =
      MakeProduct(InputRef(call, 1), InputRef(call, 2), InputRef(call, 0), OutputRef(call, 0));
  product.alpha = ScalarAttribute(call, kAlpha);
  product.beta = ScalarAttribute(call, kBeta);
  return MakeProductKernel(product);
}

// The sum over the batch: it belongs to the depth.
std::unique_ptr<Kernel> MakeAddbmm(const Call& call) {
  const TensorRef left = InputRef(call, 1);
  const TensorRef right = InputRef(call, 2);
  const TensorRef added = InputRef(call, 0);
  const TensorRef out = OutputRef(call, 0);
  Product product;
  product.num_rows = left.layout.shape[1];
  product.depth = left.layout.shape[0] * left.layout.shape[2];
  product.num_columns = right.layout.shape[2];
  product.left = OperandOf(left, {}, AxisOf(left.layout, 1),
                           JoinGroups(AxisOf(left.layout, 0), AxisOf(left.layout, 2)));
  product.right = OperandOf(right, {}, JoinGroups(AxisOf(right.layout, 0), AxisOf(right.layout, 1)),
                            AxisOf(right.layout, 2));
  product.out = OperandOf(out, {}, AxisOf(out.layout, 0), AxisOf(out.layout, 1));
  const Layout layout = BroadcastTo(added.layout, out.layout);
  product.added = OperandOf(added, {}, AxisOf(layout, 0), AxisOf(layout, 1));
  product.beta = ScalarAttribute(call, 0);
  product.alpha = ScalarAttribute(call, 1);
  return MakeProductKernel(product);
}

// The outer product of two vectors: nothing is summed up, so that it is bound by memory. Tasks are
// rows of a part of the columns.
std::unique_ptr<Kernel> MakeOuter(const TensorRef& left, const TensorRef& right,
                                  const TensorRef& out) {
  constexpr int64_t kPart = 1024;
  const int64_t num_rows = out.layout.shape[0];
  const int64_t num_columns = out.layout.shape[1];
  const int64_t column_parts = CeilDivide(num_columns, kPart);
  const int64_t rows_per_task = PiecesPerTask(std::min(num_columns, kPart));
  const int64_t num_tasks = CeilDivide(num_rows, rows_per_task) * column_parts;
  const bool is_double =
      left.layout.dtype == Dtype::kDouble || right.layout.dtype == Dtype::kDouble;
  const Dtype either = IsFloating(left.layout.dtype) ? left.layout.dtype : right.layout.dtype;
  return MakePlannedKernel(
      num_rows * num_columns, 0,
      [=](const void* const* inputs, void* const* outputs, void* /*workspace*/,
          TaskRunner& runner) {
        VisitNumber(is_double ? Dtype::kDouble : either, [&]<typename C>(C) {
          RunTasks(runner, num_tasks, [&](int64_t task) {
            const int64_t column = task % column_parts * kPart;
            const int64_t count = std::min(kPart, num_columns - column);
            const int64_t begin = task / column_parts * rows_per_task;
            const int64_t end = std::min(begin + rows_per_task, num_rows);
            C factors[kPart];
            C products[kPart];
            VisitAnyElement(right.layout.dtype, [&]<typename Element>(Element) {
              const int64_t stride = right.layout.strides[0];
              LoadRun(static_cast<const Element*>(inputs[right.address]) + column * stride, stride,
                      count, factors);
            });
            VisitAnyElement(out.layout.dtype, [&]<typename Element>(Element) {
              for (int64_t i = begin; i < end; ++i) {
                const C factor = LoadNumber<C>(left.layout.dtype, inputs[left.address],
                                               i * left.layout.strides[0]);
                auto* const row = static_cast<Element*>(outputs[out.address]) +
                                  i * out.layout.strides[0] + column * out.layout.strides[1];
                if constexpr (std::is_same_v<C, Element>) {
                  if (out.layout.strides[1] == 1) {
                    for (int64_t j = 0; j < count; ++j) row[j] = Times(factor, factors[j]);
                    continue;
                  }
                }
                for (int64_t j = 0; j < count; ++j) products[j] = Times(factor, factors[j]);
                StoreRun(products, 1, count, row, out.layout.strides[1]);
              }
            });
          });
        });
      });
}

std::unique_ptr<Kernel> MakeGer(const Call& call) {
  return MakeOuter(InputRef(call, 0), InputRef(call, 1), OutputRef(call, 0));
}

TensorRef WithAxesSwapped(TensorRef tensor, bool swaps) {
  if (swaps) {
    std::swap(tensor.layout.shape[0], tensor.layout.shape[1]);
    std::swap(tensor.layout.strides[0], tensor.layout.strides[1]);
  }
  return tensor;
}

std::unique_ptr<Kernel> MakeGemm(const Call& call) {
  Product product = MakeProduct(WithAxesSwapped(InputRef(call, 0), BoolAttribute(call, 2)),
                                WithAxesSwapped(InputRef(call, 1), BoolAttribute(call, 3)),
                                InputRef(call, 2), OutputRef(call, 0));
  product.alpha = ScalarAttribute(call, 0);
  product.beta = ScalarAttribute(call, 1);
  return MakeProductKernel(product);
}

// Two equations are taken: "a,b->ab" and "abcd,abced->abce".
std::unique_ptr<Kernel> MakeEinsum(const Call& call) {
  const std::vector<TensorRef> tensors = InputRefs(call, 0);
  const TensorRef out = OutputRef(call, 0);
  if (tensors[0].layout.rank == 1) {
    return MakeOuter(tensors[0], tensors[1], out);
  }
  const Layout& left = tensors[0].layout;
  const Layout& right = tensors[1].layout;
  Product product;
  product.num_batches = left.shape[0] * left.shape[1] * left.shape[2];
  product.depth = left.shape[3];
  product.num_columns = right.shape[3];
  product.left = OperandOf(tensors[0], GroupOf(left, 0, 3), {}, AxisOf(left, 3));
  product.right = OperandOf(tensors[1], GroupOf(right, 0, 3), AxisOf(right, 4), AxisOf(right, 3));
  product.out = OperandOf(out, GroupOf(out.layout, 0, 3), {}, AxisOf(out.layout, 3));
  return MakeProductKernel(product);
}

}  // namespace

std::span<const KernelEntry> MatrixKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnAddbmm", &MakeAddbmm},
      {"aclnnAddmm", &MakeAdded<1, 0>},
      {"aclnnAddmv", &MakeAdded<0, 1>},
      {"aclnnBaddbmm", &MakeAdded<1, 0>},
      {"aclnnBatchMatMul", &MakeMatmul},
      {"aclnnDot", &MakeMatmul},
      {"aclnnEinsum", &MakeEinsum},
      {"aclnnGemm", &MakeGemm},
      {"aclnnGer", &MakeGer},
      {"aclnnInplaceAddmm", &MakeAdded<1, 0>},
      {"aclnnInplaceBaddbmm", &MakeAdded<1, 0>},
      {"aclnnMatmul", &MakeMatmul},
      {"aclnnMm", &MakeMatmul},
      {"aclnnMv", &MakeMatmul},
  };
  return kEntries;
}

}  // namespace opserve::kernels
