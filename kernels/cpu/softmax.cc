// The softmax family.
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "kernels/cpu/call.h"
#include "kernels/cpu/math.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/rows.h"

namespace opserve::kernels {
namespace {

// What masked positions hold, as on the device: the softmax of a row that is all masked is even.
constexpr double kMasked = -10000.0;

enum class Softmax { kPlain, kLog, kMasked };

// numbers: the greatest value, the sum of the exponentials or its logarithm.
template <Softmax kForm>
struct SoftmaxFormula {
  static constexpr int kPasses = 2;
  static constexpr uint32_t Uses(int /*pass*/) { return kForm == Softmax::kMasked ? 3 : 1; }

  template <typename C, typename Reader>
  [[gnu::always_inline]] static auto Value(const C* const* in, Reader reader, C scale) {
    if constexpr (kForm == Softmax::kMasked) {
      const auto value = reader(in[0]) * scale;
      return reader(in[1]) != C{0} ? decltype(value){} + static_cast<C>(kMasked) : value;
    } else {
      return reader(in[0]);
    }
  }
  template <typename C>
  static void Begin(Row<C>& row, const RowParameters& /*parameters*/) {
    row.numbers[0] = -std::numeric_limits<C>::infinity();
  }
  template <typename C>
  [[gnu::flatten]] static void Reduce(int pass, const C* const* in, int64_t count,
                                      const RowParameters& parameters, Row<C>& row) {
    const C scale = static_cast<C>(parameters.scale);
    const C* const values[] = {in[0], in[1]};
    if (pass == 0) {
      row.numbers[0] =
          MaximumOf(count, row.numbers[0], [&](auto at) { return Value<C>(values, at, scale); });
    } else {
      const C greatest = row.numbers[0];
      row.sums[0] +=
          SumOf<C>(count, [&](auto at) { return Exp(Value<C>(values, at, scale) - greatest); });
    }
  }
  template <typename C>
  static void EndPass(int pass, int64_t /*columns*/, const RowParameters& /*parameters*/,
                      Row<C>& row) {
    if (pass == 0) return;
    row.numbers[1] = static_cast<C>(kForm == Softmax::kLog ? std::log(row.sums[0]) : row.sums[0]);
  }
  template <typename C>
  static void Compute(const C* const* in, int64_t count, const RowParameters& parameters,
                      const Row<C>& row, C* const* outputs) {
    const C scale = static_cast<C>(parameters.scale);
    const C* const values[] = {in[0], in[1]};
    const C greatest = row.numbers[0];
    const C sum = row.numbers[1];
    C* __restrict out = outputs[0];
    OPSERVE_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      const C value = Value<C>(values, ElementReader<C>{i}, scale) - greatest;
      out[i] = kForm == Softmax::kLog ? value - sum : Exp(value) / sum;
    }
  }
};

// Inputs: the gradient, the softmax, and the mask.
template <bool kIsMasked>
struct SoftmaxBackwardFormula {
  static constexpr int kPasses = 1;
  static constexpr uint32_t Uses(int pass) { return pass == 0 || !kIsMasked ? 3 : 7; }

  template <typename C>
  static void Begin(Row<C>& /*row*/, const RowParameters& /*parameters*/) {}
  template <typename C>
  [[gnu::flatten]] static void Reduce(int /*pass*/, const C* const* in, int64_t count,
                                      const RowParameters& /*parameters*/, Row<C>& row) {
    const C* grad = in[0];
    const C* output = in[1];
    row.sums[0] += SumOf<C>(count, [&](auto at) { return at(grad) * at(output); });
  }
  template <typename C>
  static void EndPass(int /*pass*/, int64_t /*columns*/, const RowParameters& /*parameters*/,
                      Row<C>& row) {
    row.numbers[0] = static_cast<C>(row.sums[0]);
  }
  template <typename C>
  static void Compute(const C* const* in, int64_t count, const RowParameters& parameters,
                      const Row<C>& row, C* const* outputs) {
    const C scale = static_cast<C>(parameters.scale);
    const C sum = row.numbers[0];
    const C* grad = in[0];
    const C* output = in[1];
    const C* mask = in[2];
    C* __restrict out = outputs[0];
    OPSERVE_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      const C value = (grad[i] - sum) * output[i];
      if constexpr (kIsMasked) {
        out[i] = mask[i] != 0 ? C{0} : value * scale;
      } else {
        out[i] = value;
      }
    }
  }
};

RowsPlan PlanAlong(const TensorRef& out, int axis) {
  RowsPlan plan;
  plan.num_elements = NumElements(out.layout);
  plan.num_columns = ExtentOf(out.layout, axis);
  plan.num_rows = plan.num_elements / std::max<int64_t>(1, plan.num_columns);
  plan.outputs = {SplitOff(out, axis)};
  return plan;
}

template <Softmax kForm>
std::unique_ptr<Kernel> MakeSoftmax(const Call& call) {
  const TensorRef out = OutputRef(call, 0);
  const int axis = AxisAttribute(IntAttribute(call, 0), out.layout.rank);
  RowsPlan plan = PlanAlong(out, axis);
  plan.inputs = {SplitOff(InputRef(call, 0), axis)};
  return MakeRowsKernel<SoftmaxFormula<kForm>>(std::move(plan));
}

std::unique_ptr<Kernel> MakeSoftmaxBackward(const Call& call) {
  const TensorRef out = OutputRef(call, 0);
  const int axis = AxisAttribute(IntAttribute(call, 0), out.layout.rank);
  RowsPlan plan = PlanAlong(out, axis);
  plan.inputs = {SplitOff(InputRef(call, 0), axis), SplitOff(InputRef(call, 1), axis)};
  return MakeRowsKernel<SoftmaxBackwardFormula<false>>(std::move(plan));
}

std::unique_ptr<Kernel> MakeScaledMaskedSoftmax(const Call& call) {
  const TensorRef out = OutputRef(call, 0);
  TensorRef mask = InputRef(call, 1);
  mask.layout = BroadcastTo(mask.layout, out.layout);
  const int axis = out.layout.rank - 1;
  RowsPlan plan = PlanAlong(out, axis);
  plan.parameters.scale = RealAttribute(call, 0);
  plan.inputs = {SplitOff(InputRef(call, 0), axis), SplitOff(mask, axis)};
  return MakeRowsKernel<SoftmaxFormula<Softmax::kMasked>>(std::move(plan));
}

std::unique_ptr<Kernel> MakeScaledMaskedSoftmaxBackward(const Call& call) {
  const TensorRef out = OutputRef(call, 0);
  TensorRef mask = InputRef(call, 2);
  mask.layout = BroadcastTo(mask.layout, out.layout);
  const int axis = out.layout.rank - 1;
  RowsPlan plan = PlanAlong(out, axis);
  plan.parameters.scale = RealAttribute(call, 0);
  plan.inputs = {SplitOff(InputRef(call, 0), axis), SplitOff(InputRef(call, 1), axis),
                 SplitOff(mask, axis)};
  return MakeRowsKernel<SoftmaxBackwardFormula<true>>(std::move(plan));
}

}  // namespace

std::span<const KernelEntry> SoftmaxKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnLogSoftmax", &MakeSoftmax<Softmax::kLog>},
      {"aclnnScaledMaskedSoftmax", &MakeScaledMaskedSoftmax},
      {"aclnnScaledMaskedSoftmaxBackward", &MakeScaledMaskedSoftmaxBackward},
      {"aclnnSoftmax", &MakeSoftmax<Softmax::kPlain>},
      {"aclnnSoftmaxBackward", &MakeSoftmaxBackward},
  };
  return kEntries;
}

}  // namespace opserve::kernels
