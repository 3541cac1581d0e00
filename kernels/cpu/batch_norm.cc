// Batch norm: a row for each channel.
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "kernels/cpu/call.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/rows.h"

namespace opserve::kernels {
namespace {

// Of each row: weight, bias, and the mean and variance so far. numbers: the mean, 1/deviation.
// Outputs of a row: both, and the new mean and variance. scale is the momentum.
template <bool kTrains>
struct BatchNormFormula {
  static constexpr int kPasses = kTrains ? 2 : 0;
  static constexpr uint32_t Uses(int /*pass*/) { return 1; }

  template <typename C>
  static void Begin(Row<C>& row, const RowParameters& parameters) {
    row.numbers[0] = row.inputs[2];
    row.numbers[1] = static_cast<C>(1 / std::sqrt(row.inputs[3] + parameters.eps));
    row.outputs = {row.numbers[0], row.numbers[1], row.inputs[2], row.inputs[3]};
  }
  template <typename C>
  [[gnu::flatten]] static void Reduce(int pass, const C* const* in, int64_t count,
                                      const RowParameters& /*parameters*/, Row<C>& row) {
    const C* x = in[0];
    if (pass == 0) {
      row.sums[0] += SumOf<C>(count, [&](auto at) { return at(x); });
      return;
    }
    const C mean = row.numbers[0];
    row.sums[1] += SumOf<C>(count, [&](auto at) { return (at(x) - mean) * (at(x) - mean); });
  }
  template <typename C>
  static void EndPass(int pass, int64_t columns, const RowParameters& parameters, Row<C>& row) {
    const double count = static_cast<double>(columns);
    const double momentum = parameters.scale;
    if (pass == 0) {
      const double mean = row.sums[0] / count;
      row.numbers[0] = static_cast<C>(mean);
      row.outputs[0] = row.numbers[0];
      row.outputs[2] = static_cast<C>((1 - momentum) * row.inputs[2] + momentum * mean);
    } else {
      row.numbers[1] = static_cast<C>(1 / std::sqrt(row.sums[1] / count + parameters.eps));
      row.outputs[1] = row.numbers[1];
      row.outputs[3] =
          static_cast<C>((1 - momentum) * row.inputs[3] + momentum * row.sums[1] / (count - 1));
    }
  }
  template <typename C>
  static void Compute(const C* const* in, int64_t count, const RowParameters& /*parameters*/,
                      const Row<C>& row, C* const* outputs) {
    const C mean = row.numbers[0];
    const C rstd = row.numbers[1];
    const C weight = row.inputs[0];
    const C bias = row.inputs[1];
    const C* x = in[0];
    C* __restrict out = outputs[0];
    OPSERVE_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) out[i] = (x[i] - mean) * rstd * weight + bias;
  }
};

// The formula of what is normalised by given statistics: inputs 2 and 3 are mean and 1/deviation.
struct BatchNormElementFormula : BatchNormFormula<false> {
  template <typename C>
  static void Begin(Row<C>& row, const RowParameters& /*parameters*/) {
    row.numbers[0] = row.inputs[2];
    row.numbers[1] = row.inputs[3];
  }
};

// Inputs: the gradient, x; of each row weight, mean and, in training, 1/deviation, otherwise the
// variance. Outputs of a row: the gradients of weight and bias, and the sum of the gradient times
// the distance from the mean.
template <bool kTrains>
struct BatchNormBackwardFormula {
  static constexpr int kPasses = 1;
  static constexpr uint32_t Uses(int pass) { return pass == 0 || kTrains ? 3 : 1; }

  template <typename C>
  static void Begin(Row<C>& row, const RowParameters& parameters) {
    row.numbers[2] =
        kTrains ? row.inputs[2] : static_cast<C>(1 / std::sqrt(row.inputs[2] + parameters.eps));
  }
  template <typename C>
  [[gnu::flatten]] static void Reduce(int /*pass*/, const C* const* in, int64_t count,
                                      const RowParameters& /*parameters*/, Row<C>& row) {
    const C mean = row.inputs[1];
    const C *grad = in[0], *x = in[1];
    const auto sums = SumsOf<C, 2>(count, [&](auto at) {
      return std::array{at(grad), at(grad) * (at(x) - mean)};
    });
    row.sums[0] += sums[0];
    row.sums[1] += sums[1];
  }
  template <typename C>
  static void EndPass(int /*pass*/, int64_t columns, const RowParameters& /*parameters*/,
                      Row<C>& row) {
    const double rstd = row.numbers[2];
    const double count = static_cast<double>(columns);
    row.outputs[0] = static_cast<C>(row.sums[1] * rstd);
    row.outputs[1] = static_cast<C>(row.sums[0]);
    row.outputs[2] = static_cast<C>(row.sums[1]);
    row.outputs[3] = row.outputs[1];
    row.numbers[0] = static_cast<C>(row.sums[0] / count);
    row.numbers[1] = static_cast<C>(row.sums[1] / count * rstd * rstd);
  }
  template <typename C>
  static void Compute(const C* const* in, int64_t count, const RowParameters& /*parameters*/,
                      const Row<C>& row, C* const* outputs) {
    const C *grad = in[0], *x = in[1];
    const C mean = row.inputs[1];
    const C factor = row.inputs[0] * row.numbers[2];
    const C mean_grad = row.numbers[0];
    const C slope = row.numbers[1];
    C* __restrict out = outputs[0];
    OPSERVE_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (kTrains) {
        out[i] = (grad[i] - mean_grad - (x[i] - mean) * slope) * factor;
      } else {
        out[i] = grad[i] * factor;
      }
    }
  }
};

// The same with given sums: inputs 3 and 4 of a row; scale is the number of elements.
struct BatchNormElementBackwardFormula : BatchNormBackwardFormula<true> {
  static constexpr int kPasses = 0;
  template <typename C>
  static void Begin(Row<C>& row, const RowParameters& parameters) {
    const double rstd = row.inputs[2];
    row.numbers[2] = row.inputs[2];
    row.numbers[0] = static_cast<C>(row.inputs[3] / parameters.scale);
    row.numbers[1] = static_cast<C>(row.inputs[4] / parameters.scale * rstd * rstd);
  }
};

RowOperand ByChannel(const TensorRef& tensor) {
  return tensor.is_given() ? Transposed(SplitOff(tensor, 1)) : SplitAt(tensor, 0);
}
RowOperand OfChannels(const TensorRef& tensor, double absent = 0) {
  return SplitAt(tensor, tensor.layout.rank, absent);
}

RowsPlan PlanOf(const TensorRef& x) {
  RowsPlan plan;
  plan.num_elements = NumElements(x.layout);
  plan.num_rows = ExtentOf(x.layout, 1);
  plan.num_columns = plan.num_elements / std::max<int64_t>(1, plan.num_rows);
  return plan;
}

std::unique_ptr<Kernel> MakeBatchNorm(const Call& call) {
  const TensorRef x = InputRef(call, 0);
  const bool trains = BoolAttribute(call, 0);
  RowsPlan plan = PlanOf(x);
  plan.parameters = {RealAttribute(call, 2), RealAttribute(call, 1), trains};
  plan.inputs = {ByChannel(x)};
  plan.row_inputs = {OfChannels(InputRef(call, 1), 1), OfChannels(InputRef(call, 2), 0),
                     OfChannels(InputRef(call, 3), 0), OfChannels(InputRef(call, 4), 1)};
  // The statistics so far are written in place, in training.
  plan.outputs = {ByChannel(OutputRef(call, 2))};
  plan.row_outputs = {OfChannels(OutputRef(call, 3)), OfChannels(OutputRef(call, 4))};
  if (!trains) return MakeRowsKernel<BatchNormFormula<false>>(std::move(plan));
  plan.row_outputs.push_back(OfChannels(OutputRef(call, 0)));
  plan.row_outputs.push_back(OfChannels(OutputRef(call, 1)));
  return MakeRowsKernel<BatchNormFormula<true>>(std::move(plan));
}

std::unique_ptr<Kernel> MakeBatchNormStats(const Call& call) {
  const TensorRef x = InputRef(call, 0);
  RowsPlan plan = PlanOf(x);
  plan.parameters.eps = RealAttribute(call, 0);
  plan.inputs = {ByChannel(x)};
  plan.row_inputs = {OfChannels({}), OfChannels({}), OfChannels({}), OfChannels({})};
  plan.row_outputs = {OfChannels(OutputRef(call, 0)), OfChannels(OutputRef(call, 1))};
  return MakeRowsKernel<BatchNormFormula<true>>(std::move(plan));
}

std::unique_ptr<Kernel> MakeBatchNormElement(const Call& call) {
  const TensorRef x = InputRef(call, 0);
  RowsPlan plan = PlanOf(x);
  plan.inputs = {ByChannel(x)};
  plan.row_inputs = {OfChannels(InputRef(call, 1), 1), OfChannels(InputRef(call, 2), 0),
                     OfChannels(InputRef(call, 3), 0), OfChannels(InputRef(call, 4), 1)};
  plan.outputs = {ByChannel(OutputRef(call, 0))};
  return MakeRowsKernel<BatchNormElementFormula>(std::move(plan));
}

std::unique_ptr<Kernel> MakeBatchNormBackward(const Call& call) {
  const TensorRef x = InputRef(call, 1);
  const bool trains = BoolAttribute(call, 0);
  RowsPlan plan = PlanOf(x);
  plan.parameters.eps = RealAttribute(call, 1);
  plan.inputs = {ByChannel(InputRef(call, 0)), ByChannel(x)};
  plan.row_inputs = {OfChannels(InputRef(call, 2), 1),
                     OfChannels(InputRef(call, trains ? 5 : 3), 0),
                     OfChannels(InputRef(call, trains ? 6 : 4), 1)};
  if (HasOutput(call, 0)) plan.outputs = {ByChannel(OutputRef(call, 0))};
  plan.row_outputs = {OfChannels(OutputRef(call, 1)), OfChannels(OutputRef(call, 2))};
  if (trains) return MakeRowsKernel<BatchNormBackwardFormula<true>>(std::move(plan));
  return MakeRowsKernel<BatchNormBackwardFormula<false>>(std::move(plan));
}

std::unique_ptr<Kernel> MakeBatchNormReduceBackward(const Call& call) {
  const TensorRef x = InputRef(call, 1);
  RowsPlan plan = PlanOf(x);
  plan.inputs = {ByChannel(InputRef(call, 0)), ByChannel(x)};
  plan.row_inputs = {OfChannels(InputRef(call, 4), 1), OfChannels(InputRef(call, 2), 0),
                     OfChannels(InputRef(call, 3), 1)};
  // The gradient of the bias is the sum of the gradient.
  plan.row_outputs = {OfChannels(OutputRef(call, 2)), OfChannels(OutputRef(call, 0)),
                      OfChannels(OutputRef(call, 1)), OfChannels(OutputRef(call, 3))};
  return MakeRowsKernel<BatchNormBackwardFormula<true>>(std::move(plan));
}

std::unique_ptr<Kernel> MakeBatchNormElementBackward(const Call& call) {
  const TensorRef x = InputRef(call, 1);
  RowsPlan plan = PlanOf(x);
  plan.inputs = {ByChannel(InputRef(call, 0)), ByChannel(x)};
  plan.row_inputs = {OfChannels(InputRef(call, 4), 1), OfChannels(InputRef(call, 2), 0),
                     OfChannels(InputRef(call, 3), 1), OfChannels(InputRef(call, 5), 0),
                     OfChannels(InputRef(call, 6), 0)};
  plan.total = InputRef(call, 7);
  plan.outputs = {ByChannel(OutputRef(call, 0))};
  return MakeRowsKernel<BatchNormElementBackwardFormula>(std::move(plan));
}

}  // namespace

std::span<const KernelEntry> BatchNormKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnBatchNorm", &MakeBatchNorm},
      {"aclnnBatchNormBackward", &MakeBatchNormBackward},
      {"aclnnBatchNormElemt", &MakeBatchNormElement},
      {"aclnnBatchNormElemtBackward", &MakeBatchNormElementBackward},
      {"aclnnBatchNormReduceBackward", &MakeBatchNormReduceBackward},
      {"aclnnBatchNormStats", &MakeBatchNormStats},
  };
  return kEntries;
}

}  // namespace opserve::kernels
