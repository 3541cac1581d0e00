// Normalisation of rows: layer and root mean square norm, and what is added before them.
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cpu/call.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/rows.h"

namespace opserve::kernels {
namespace {

// What is normalised: an input, or scale * input + second input + third input.
template <bool kAdds, typename C, typename Reader>
[[gnu::always_inline]] inline auto Addend(const C* x, const C* second, const C* third, C scale,
                                          Reader at) {
  if constexpr (kAdds) {
    return scale * at(x) + at(second) + at(third);
  } else {
    return at(x);
  }
}

// Inputs: x, gamma, beta and, if it adds, the second and third addend. numbers: mean, 1/deviation.
// Outputs: the normalised rows, and what was normalised.
template <bool kIsCentered, bool kAdds>
struct NormFormula {
  static constexpr int kPasses = kIsCentered ? 2 : 1;
  static constexpr uint32_t kValues = kAdds ? 0b11001 : 0b1;
  static constexpr uint32_t Uses(int pass) { return pass == kPasses ? kValues | 0b110 : kValues; }

  template <typename C>
  static void Begin(Row<C>& row, const RowParameters& /*parameters*/) {
    row.numbers[0] = 0;
  }
  template <typename C>
  [[gnu::flatten]] static void Reduce(int pass, const C* const* in, int64_t count,
                                      const RowParameters& parameters, Row<C>& row) {
    const C scale = static_cast<C>(parameters.scale);
    const C *x = in[0], *second = in[3], *third = in[4];
    if (kIsCentered && pass == 0) {
      row.sums[0] +=
          SumOf<C>(count, [&](auto at) { return Addend<kAdds>(x, second, third, scale, at); });
      return;
    }
    const C mean = row.numbers[0];
    row.sums[1] += SumOf<C>(count, [&](auto at) {
      const auto distance = Addend<kAdds>(x, second, third, scale, at) - mean;
      return distance * distance;
    });
  }
  template <typename C>
  static void EndPass(int pass, int64_t columns, const RowParameters& parameters, Row<C>& row) {
    const double count = static_cast<double>(columns);
    if (kIsCentered && pass == 0) {
      row.numbers[0] = static_cast<C>(row.sums[0] / count);
      row.outputs[0] = row.numbers[0];
    } else {
      row.numbers[1] = static_cast<C>(1 / std::sqrt(row.sums[1] / count + parameters.eps));
      row.outputs[1] = row.numbers[1];
    }
  }
  template <typename C>
  static void Compute(const C* const* in, int64_t count, const RowParameters& parameters,
                      const Row<C>& row, C* const* outputs) {
    const C scale = static_cast<C>(parameters.scale);
    const C mean = row.numbers[0];
    const C rstd = row.numbers[1];
    const C *x = in[0], *gamma = in[1], *beta = in[2], *second = in[3], *third = in[4];
    C* __restrict out = outputs[0];
    C* __restrict sum = outputs[1];
    OPSERVE_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      const C value = Addend<kAdds>(x, second, third, scale, ElementReader<C>{i});
      out[i] = (value - mean) * rstd * gamma[i] + beta[i];
      if constexpr (kAdds) sum[i] = value;
    }
  }
};

// Inputs: the gradient, x, gamma and, if it adds, the second addend and what is added to the
// result; of each row the mean and 1/deviation. Outputs: the gradient of what was normalised, and
// that of x; of each column the gradients of gamma and beta.
template <bool kIsCentered, bool kAdds>
struct NormBackwardFormula {
  static constexpr int kPasses = 1;
  static constexpr uint32_t Uses(int pass) {
    return !kAdds ? 0b111 : pass == kPasses ? 0b11111 : 0b01111;
  }

  template <typename C, typename Reader>
  [[gnu::always_inline]] static auto Value(const C* x, const C* second, C scale, Reader at) {
    if constexpr (kAdds) {
      return scale * at(x) + at(second);
    } else {
      return at(x);
    }
  }
  template <typename C>
  static void Begin(Row<C>& /*row*/, const RowParameters& /*parameters*/) {}
  template <typename C>
  [[gnu::flatten]] static void Reduce(int /*pass*/, const C* const* in, int64_t count,
                                      const RowParameters& parameters, Row<C>& row) {
    const C scale = static_cast<C>(parameters.scale);
    const C *grad = in[0], *x = in[1], *gamma = in[2], *second = in[3];
    const C mean = row.inputs[0];
    const auto sums = SumsOf<C, 2>(count, [&](auto at) {
      const auto scaled = at(grad) * at(gamma);
      return std::array{scaled, scaled * (Value(x, second, scale, at) - mean)};
    });
    if (kIsCentered) row.sums[0] += sums[0];
    row.sums[1] += sums[1];
  }
  template <typename C>
  static void EndPass(int /*pass*/, int64_t columns, const RowParameters& /*parameters*/,
                      Row<C>& row) {
    const double count = static_cast<double>(columns);
    const double rstd = row.inputs[1];
    row.numbers[0] = static_cast<C>(row.sums[0] / count);
    row.numbers[1] = static_cast<C>(row.sums[1] / count * rstd * rstd);
  }
  template <typename C>
  static void Compute(const C* const* in, int64_t count, const RowParameters& parameters,
                      const Row<C>& row, C* const* outputs) {
    ComputeRow<false, C>(in, count, parameters, row, outputs, nullptr);
  }
  template <typename C>
  static void ComputeAndAdd(const C* const* in, int64_t count, const RowParameters& parameters,
                            const Row<C>& row, C* const* outputs, C* const* sums) {
    ComputeRow<true, C>(in, count, parameters, row, outputs, sums);
  }
  template <bool kAddsToColumns, typename C>
  static void ComputeRow(const C* const* in, int64_t count, const RowParameters& parameters,
                         const Row<C>& row, C* const* outputs, C* const* sums) {
    const C scale = static_cast<C>(parameters.scale);
    const C *grad = in[0], *x = in[1], *gamma = in[2], *second = in[3], *added = in[4];
    const C mean = row.inputs[0];
    const C rstd = row.inputs[1];
    const C mean_grad = row.numbers[0];
    const C slope = row.numbers[1];
    C* __restrict out = outputs[0];
    C* __restrict scaled = outputs[1];
    C* __restrict of_gamma = kAddsToColumns ? sums[0] : nullptr;
    C* __restrict of_beta = kAddsToColumns ? sums[1] : nullptr;
    OPSERVE_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      const C value = Value(x, second, scale, ElementReader<C>{i}) - mean;
      const C result = rstd * (grad[i] * gamma[i] - mean_grad - value * slope);
      if constexpr (kAdds) {
        out[i] = result + added[i];
        scaled[i] = result * scale;
      } else {
        out[i] = result;
      }
      if constexpr (kAddsToColumns) {
        of_gamma[i] += grad[i] * (value * rstd);
        of_beta[i] += grad[i];
      }
    }
  }
};

// A tensor that has the columns' axes only, or the rows'.
RowOperand OfColumns(const TensorRef& tensor, int64_t num_rows, double absent = 0) {
  if (!tensor.is_given()) return SplitAt(tensor, 0, absent);
  return {tensor.layout.dtype, tensor.address, absent, OneAxis(num_rows, 0),
          GroupOf(tensor.layout)};
}
RowOperand OfRows(const TensorRef& tensor, int64_t num_columns, double absent = 0) {
  return Transposed(OfColumns(tensor, num_columns, absent));
}

// A plan for tensors whose axes from `axis` on are the columns.
RowsPlan PlanAt(const Layout& layout, int axis) {
  RowsPlan plan;
  plan.num_elements = NumElements(layout);
  for (int d = 0; d < layout.rank; ++d) {
    (d < axis ? plan.num_rows : plan.num_columns) *= layout.shape[d];
  }
  return plan;
}

struct NormTensors {
  TensorRef x, gamma, beta, second, third, out, mean, rstd, sum;
};

// Normalises over the last axes of x, from `axis` on.
template <bool kIsCentered, bool kAdds>
std::unique_ptr<Kernel> MakeNorm(const NormTensors& tensors, int axis, double eps,
                                 double scale = 1) {
  RowsPlan plan = PlanAt(tensors.x.layout, axis);
  plan.parameters = {eps, scale, false};
  plan.inputs = {SplitAt(tensors.x, axis), OfColumns(tensors.gamma, plan.num_rows, 1),
                 OfColumns(tensors.beta, plan.num_rows, 0)};
  if (kAdds) {
    plan.inputs.push_back(SplitAt(tensors.second, axis));
    const TensorRef& third = tensors.third;
    const bool is_of_columns = third.is_given() && third.layout.rank != tensors.x.layout.rank;
    plan.inputs.push_back(is_of_columns ? OfColumns(third, plan.num_rows) : SplitAt(third, axis));
  }
  plan.outputs = {SplitAt(tensors.out, axis)};
  if (kAdds) plan.outputs.push_back(SplitAt(tensors.sum, axis));
  plan.row_outputs = {OfRows(tensors.mean, 1), OfRows(tensors.rstd, 1)};
  return MakeRowsKernel<NormFormula<kIsCentered, kAdds>>(std::move(plan));
}

struct NormBackwardTensors {
  TensorRef grad, x, second, mean, rstd, gamma, added, grad_x, scaled_grad, grad_gamma, grad_beta;
};

template <bool kIsCentered, bool kAdds>
std::unique_ptr<Kernel> MakeNormBackward(const NormBackwardTensors& tensors, int axis,
                                         double scale = 1) {
  RowsPlan plan = PlanAt(tensors.x.layout, axis);
  plan.parameters.scale = scale;
  plan.inputs = {SplitAt(tensors.grad, axis), SplitAt(tensors.x, axis),
                 OfColumns(tensors.gamma, plan.num_rows, 1)};
  plan.outputs = {SplitAt(tensors.grad_x, axis)};
  if (kAdds) {
    plan.inputs.push_back(SplitAt(tensors.second, axis));
    plan.inputs.push_back(SplitAt(tensors.added, axis));
    plan.outputs.push_back(SplitAt(tensors.scaled_grad, axis));
  }
  plan.row_inputs = {OfRows(tensors.mean, 1), OfRows(tensors.rstd, 1)};
  if (tensors.grad_gamma.is_given() || tensors.grad_beta.is_given()) {
    plan.column_outputs = {OfColumns(tensors.grad_gamma, plan.num_rows),
                           OfColumns(tensors.grad_beta, plan.num_rows)};
  }
  return MakeRowsKernel<NormBackwardFormula<kIsCentered, kAdds>>(std::move(plan));
}

int AxisOfTrailing(const Layout& layout, size_t num_axes) {
  return std::max(0, layout.rank - static_cast<int>(num_axes));
}

std::unique_ptr<Kernel> MakeLayerNorm(const Call& call) {
  NormTensors tensors;
  tensors.x = InputRef(call, 0);
  tensors.gamma = InputRef(call, 1);
  tensors.beta = InputRef(call, 2);
  tensors.out = OutputRef(call, 0);
  tensors.mean = OutputRef(call, 1);
  tensors.rstd = OutputRef(call, 2);
  const int axis = AxisOfTrailing(tensors.x.layout, IntsAttribute(call, 0).size());
  return MakeNorm<true, false>(tensors, axis, RealAttribute(call, 1));
}

std::unique_ptr<Kernel> MakeLayerNormBackward(const Call& call) {
  NormBackwardTensors tensors;
  tensors.grad = InputRef(call, 0);
  tensors.x = InputRef(call, 1);
  tensors.mean = InputRef(call, 2);
  tensors.rstd = InputRef(call, 3);
  tensors.gamma = InputRef(call, 4);
  tensors.grad_x = OutputRef(call, 0);
  tensors.grad_gamma = OutputRef(call, 1);
  tensors.grad_beta = OutputRef(call, 2);
  const int axis = AxisOfTrailing(tensors.x.layout, IntsAttribute(call, 0).size());
  return MakeNormBackward<true, false>(tensors, axis);
}

std::unique_ptr<Kernel> MakeRmsNorm(const Call& call) {
  NormTensors tensors;
  tensors.x = InputRef(call, 0);
  tensors.gamma = InputRef(call, 1);
  tensors.out = OutputRef(call, 0);
  tensors.rstd = OutputRef(call, 1);
  const int axis = AxisOfTrailing(tensors.x.layout, tensors.gamma.layout.rank);
  return MakeNorm<false, false>(tensors, axis, RealAttribute(call, 0));
}

std::unique_ptr<Kernel> MakeRmsNormGrad(const Call& call) {
  NormBackwardTensors tensors;
  tensors.grad = InputRef(call, 0);
  tensors.x = InputRef(call, 1);
  tensors.rstd = InputRef(call, 2);
  tensors.gamma = InputRef(call, 3);
  tensors.grad_x = OutputRef(call, 0);
  tensors.grad_gamma = OutputRef(call, 1);
  const int axis = AxisOfTrailing(tensors.x.layout, tensors.gamma.layout.rank);
  return MakeNormBackward<false, false>(tensors, axis);
}

std::unique_ptr<Kernel> MakeAddRmsNorm(const Call& call) {
  NormTensors tensors;
  tensors.x = InputRef(call, 0);
  tensors.second = InputRef(call, 1);
  tensors.gamma = InputRef(call, 2);
  tensors.out = OutputRef(call, 0);
  tensors.rstd = OutputRef(call, 1);
  tensors.sum = OutputRef(call, 2);
  const int axis = AxisOfTrailing(tensors.x.layout, tensors.gamma.layout.rank);
  return MakeNorm<false, true>(tensors, axis, RealAttribute(call, 0));
}

std::unique_ptr<Kernel> MakeAddLayerNorm(const Call& call) {
  NormTensors tensors;
  tensors.x = InputRef(call, 0);
  tensors.second = InputRef(call, 1);
  tensors.gamma = InputRef(call, 2);
  tensors.beta = InputRef(call, 3);
  tensors.third = InputRef(call, 4);
  tensors.out = OutputRef(call, 0);
  tensors.mean = OutputRef(call, 1);
  tensors.rstd = OutputRef(call, 2);
  if (BoolAttribute(call, 1)) tensors.sum = OutputRef(call, 3);
  const int axis = AxisOfTrailing(tensors.x.layout, tensors.gamma.layout.rank);
  return MakeNorm<true, true>(tensors, axis, RealAttribute(call, 0));
}

std::unique_ptr<Kernel> MakeAddLayerNormGrad(const Call& call) {
  NormBackwardTensors tensors;
  tensors.grad = InputRef(call, 0);
  tensors.x = InputRef(call, 1);
  tensors.second = InputRef(call, 2);
  tensors.rstd = InputRef(call, 3);
  tensors.mean = InputRef(call, 4);
  tensors.gamma = InputRef(call, 5);
  tensors.added = InputRef(call, 6);
  tensors.grad_x = OutputRef(call, 0);
  tensors.grad_gamma = OutputRef(call, 1);
  tensors.grad_beta = OutputRef(call, 2);
  const int axis = AxisOfTrailing(tensors.x.layout, tensors.gamma.layout.rank);
  return MakeNormBackward<true, true>(tensors, axis);
}

// The norm of alpha * x + gx.
std::unique_ptr<Kernel> MakeDeepNorm(const Call& call) {
  NormTensors tensors;
  tensors.x = InputRef(call, 0);
  tensors.second = InputRef(call, 1);
  tensors.beta = InputRef(call, 2);
  tensors.gamma = InputRef(call, 3);
  tensors.mean = OutputRef(call, 0);
  tensors.rstd = OutputRef(call, 1);
  tensors.out = OutputRef(call, 2);
  const int axis = AxisOfTrailing(tensors.x.layout, tensors.gamma.layout.rank);
  return MakeNorm<true, true>(tensors, axis, RealAttribute(call, 1), RealAttribute(call, 0));
}

std::unique_ptr<Kernel> MakeDeepNormGrad(const Call& call) {
  NormBackwardTensors tensors;
  tensors.grad = InputRef(call, 0);
  tensors.x = InputRef(call, 1);
  tensors.second = InputRef(call, 2);
  tensors.gamma = InputRef(call, 3);
  tensors.mean = InputRef(call, 4);
  tensors.rstd = InputRef(call, 5);
  tensors.scaled_grad = OutputRef(call, 0);
  tensors.grad_x = OutputRef(call, 1);
  tensors.grad_beta = OutputRef(call, 2);
  tensors.grad_gamma = OutputRef(call, 3);
  const int axis = AxisOfTrailing(tensors.x.layout, tensors.gamma.layout.rank);
  return MakeNormBackward<true, true>(tensors, axis, RealAttribute(call, 0));
}

}  // namespace

std::span<const KernelEntry> NormalizationKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnAddLayerNorm", &MakeAddLayerNorm},
      {"aclnnAddLayerNormGrad", &MakeAddLayerNormGrad},
      {"aclnnAddRmsNorm", &MakeAddRmsNorm},
      {"aclnnDeepNorm", &MakeDeepNorm},
      {"aclnnDeepNormGrad", &MakeDeepNormGrad},
      {"aclnnFastLayerNorm", &MakeLayerNorm},
      {"aclnnLayerNorm", &MakeLayerNorm},
      {"aclnnLayerNormBackward", &MakeLayerNormBackward},
      {"aclnnLayerNormWithImplMode", &MakeLayerNorm},
      {"aclnnRmsNorm", &MakeRmsNorm},
      {"aclnnRmsNormGrad", &MakeRmsNormGrad},
  };
  return kEntries;
}

}  // namespace opserve::kernels
