// Reductions along axes.
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include "kernels/cpu/arg_reduce.h"
#include "kernels/cpu/formula.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/reduce_rows.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/sequence.h"

namespace opserve::kernels {
namespace {

using enum Arithmetic;

constexpr auto kCopy = []<typename T>(T x, const T*) { return x; };
constexpr auto kTruth = []<typename T>(T x, const T*) { return static_cast<T>(x != 0); };
constexpr auto kIsPositive = []<typename T>(T x, const T*) { return static_cast<T>(x > 0); };
constexpr auto kZeroIfNan = []<typename T>(T x, const T*) { return x != x ? T{0} : x; };
constexpr auto kDivided = []<typename T>(T sum, const T* p) {
  if constexpr (std::is_integral_v<T>) {
    return TruncatedQuotient(sum, p[0]);
  } else {
    return sum / p[0];
  }
};
constexpr auto kRootOfDivided = []<typename T>(T sum, const T* p) { return std::sqrt(sum / p[0]); };
constexpr auto kDistance = []<typename T>(T x, T mean, const T*) {
  return (x - mean) * (x - mean);
};
constexpr auto kMagnitude = []<typename T>(T x, const T*) { return std::fabs(x); };
constexpr auto kMagnitudeOrZero = []<typename T>(T x, const T*) { return x < 0 ? T{0} : x; };
constexpr auto kSquare = []<typename T>(T x, const T*) { return x * x; };
constexpr auto kPower = []<typename T>(T x, const T* p) { return std::pow(std::fabs(x), p[0]); };
constexpr auto kRoot = []<typename T>(T x, const T* p) { return std::pow(x, p[0]); };
constexpr auto kSquareRoot = []<typename T>(T x, const T*) { return std::sqrt(x); };
constexpr auto kFiniteOrZero = []<typename T>(T x, const T*) {
  return std::fabs(x) == kInfinityOf<T> ? T{0} : x;
};
constexpr auto kExpOfDifference = []<typename T>(T x, T greatest, const T*) {
  return Exp(x - greatest);
};
constexpr auto kLogPlus = []<typename T>(T sum, T greatest, const T*) {
  return Ln(sum) + greatest;
};

// Where an attribute has the axes. Others: all axes, or one that is given as a number.
constexpr int kAllAxes = -1;

uint32_t AxesOf(const Call& call, int attribute) {
  if (attribute == kAllAxes) return ~0u;
  const int rank = Input(call, 0).rank;
  const auto index = static_cast<size_t>(attribute);
  if (std::holds_alternative<int64_t>(call.attributes[index])) {
    return 1u << AxisAttribute(IntAttribute(call, index), rank);
  }
  return ReducedAxes(IntsAttribute(call, index), rank);
}

ReducePlan PlainPlan(const Call& call, int axes_attribute, Combine combine) {
  ReducePlan plan;
  plan.inputs = {0};
  plan.combine = combine;
  plan.axes = AxesOf(call, axes_attribute);
  return plan;
}

template <Combine kCombine, int kAxesAttribute>
std::unique_ptr<Kernel> MakePlain(const Call& call) {
  return MakeReduceKernel(call, PlainPlan(call, kAxesAttribute, kCombine));
}

std::unique_ptr<Kernel> MakeNansum(const Call& call) {
  ReducePlan plan = PlainPlan(call, 0, Combine::kSum);
  plan.term = LoopsOf<decltype(kZeroIfNan), 1, true>();
  return MakeReduceKernel(call, plan, RowSumsOf<decltype(kZeroIfNan)>());
}

std::unique_ptr<Kernel> MakeMeanOf(const Call& call, uint32_t axes) {
  ReducePlan plan = PlainPlan(call, kAllAxes, Combine::kSum);
  plan.axes = axes;
  plan.arithmetic = IsFloating(Output(call, 0).dtype) ? kFloating : kPromoted;
  plan.finish = LoopsOf<decltype(kDivided), 1, true>();
  plan.finish_parameters.Add(static_cast<double>(NumReduced(Input(call, 0), axes)));
  return MakeReduceKernel(call, plan);
}

std::unique_ptr<Kernel> MakeMean(const Call& call) { return MakeMeanOf(call, AxesOf(call, 0)); }

// Attributes: dim, keepDim and noopWithEmptyAxes.
std::unique_ptr<Kernel> MakeMeanV2(const Call& call) {
  const bool is_noop = IntsAttribute(call, 0).empty() && BoolAttribute(call, 2);
  return MakeMeanOf(call, is_noop ? 0 : AxesOf(call, 0));
}

std::unique_ptr<Kernel> MakeAny(const Call& call) {
  ReducePlan plan = PlainPlan(call, 0, Combine::kGreatest);
  plan.term = LoopsOf<decltype(kTruth), 1, true>();
  plan.finish = LoopsOf<decltype(kIsPositive), 1, true>();
  return MakeReduceKernel(call, plan);
}

std::unique_ptr<Kernel> MakeAll(const Call& call) {
  ReducePlan plan = PlainPlan(call, 0, Combine::kLeast);
  plan.term = LoopsOf<decltype(kTruth), 1, true>();
  plan.finish = LoopsOf<decltype(kIsPositive), 1, true>();
  return MakeReduceKernel(call, plan);
}

// Attributes: the order p and the axes. The sum of powers' root; the limits for 0 and infinities.
std::unique_ptr<Kernel> MakeNorm(const Call& call) {
  const double order = RealAttribute(call, 0, /*absent=*/2);
  ReducePlan plan = PlainPlan(call, 1, Combine::kSum);
  RowLoops rows;
  plan.arithmetic = kFloating;
  plan.term = LoopsOf<decltype(kMagnitude), 1, false>();
  if (order == 0) {
    plan.term = LoopsOf<decltype(kTruth), 1, false>();
  } else if (order == 2) {
    plan.term = LoopsOf<decltype(kSquare), 1, false>();
    rows = RowSumsOf<decltype(kSquare)>();
    plan.finish = LoopsOf<decltype(kSquareRoot), 1, false>();
  } else if (std::isinf(order)) {
    plan.combine = order > 0 ? Combine::kGreatest : Combine::kLeast;
    // Magnitudes are not negative, so that of no elements the greatest is 0.
    if (order > 0) plan.finish = LoopsOf<decltype(kMagnitudeOrZero), 1, false>();
  } else if (order != 1) {
    plan.term = LoopsOf<decltype(kPower), 1, false>();
    plan.parameters.Add(order);
    plan.finish = LoopsOf<decltype(kRoot), 1, false>();
    plan.finish_parameters.Add(1 / order);
  }
  return MakeReduceKernel(call, plan, rows);
}

// The layout of `reduced` with axes of extent 1, as the input's rank wants it.
Layout ScratchLayout(const Layout& input, uint32_t axes) {
  Layout layout = input;
  for (int d = 0; d < layout.rank; ++d) {
    if ((axes >> d & 1) != 0) layout.shape[d] = 1;
  }
  return Contiguous(layout, ScratchDtype(input.dtype));
}

// The mean, then the sum of squared distances from it: one pass would cancel out.
std::unique_ptr<Kernel> MakeVariance(const Call& call, bool takes_root, double correction) {
  const Layout& input = Input(call, 0);
  const uint32_t axes = AxesOf(call, 0);
  Sequence sequence(call);
  const Layout mean = ScratchLayout(input, axes);
  const Place scratch = sequence.Scratch(mean);
  sequence.Add(MakeMeanOf({{{input}}, {{mean}}, {}}, axes), {sequence.Input(0)}, {scratch});

  ReducePlan plan;
  plan.term = LoopsOf<decltype(kDistance), 2, false>();
  plan.arithmetic = kFloating;
  plan.inputs = {0, 1};
  plan.axes = axes;
  plan.finish = takes_root ? LoopsOf<decltype(kRootOfDivided), 1, false>()
                           : LoopsOf<decltype(kDivided), 1, false>();
  const auto count = static_cast<double>(NumReduced(input, axes));
  plan.finish_parameters.Add(std::max(0.0, count - correction));
  if (HasOutput(call, 0)) {
    sequence.Add(MakeReduceKernel({{{input}, {mean}}, {{Output(call, 0)}}, {}}, plan),
                 {sequence.Input(0), scratch}, {sequence.Output(0)});
  }
  if (HasOutput(call, 1)) {
    const Layout out = WithReducedAxes(Output(call, 1), input.rank, axes);
    sequence.Add(Map<1, kFloating>(kCopy)({{{mean}}, {{out}}, {}}), {scratch},
                 {sequence.Output(1)});
  }
  return sequence.Finish();
}

// aclnnVar has `unbiased`, the others `correction` in its place: the same number.
template <bool kTakesRoot>
std::unique_ptr<Kernel> MakeVar(const Call& call) {
  return MakeVariance(call, kTakesRoot, RealAttribute(call, 1, /*absent=*/1));
}

// ln(sum e^x) = greatest + ln(sum e^(x - greatest)), where infinities count as 0.
std::unique_ptr<Kernel> MakeLogSumExp(const Call& call) {
  const Layout& input = Input(call, 0);
  const uint32_t axes = AxesOf(call, 0);
  Sequence sequence(call);
  const Layout scratch = ScratchLayout(input, axes);
  const Place greatest = sequence.Scratch(scratch);
  const Place sum = sequence.Scratch(scratch);

  ReducePlan plan;
  plan.arithmetic = kFloating;
  plan.inputs = {0};
  plan.combine = Combine::kGreatest;
  plan.axes = axes;
  plan.finish = LoopsOf<decltype(kFiniteOrZero), 1, false>();
  sequence.Add(MakeReduceKernel({{{input}}, {{scratch}}, {}}, plan), {sequence.Input(0)},
               {greatest});
  plan.inputs = {0, 1};
  plan.combine = Combine::kSum;
  plan.term = LoopsOf<decltype(kExpOfDifference), 2, false>();
  plan.finish = {};
  sequence.Add(MakeReduceKernel({{{input}, {scratch}}, {{scratch}}, {}}, plan),
               {sequence.Input(0), greatest}, {sum});
  const Layout out = WithReducedAxes(Output(call, 0), input.rank, axes);
  sequence.Add(Map<2, kFloating>(kLogPlus)({{{scratch}, {scratch}}, {{out}}, {}}), {sum, greatest},
               {sequence.Output(0)});
  return sequence.Finish();
}

// Attributes: dim and keepdim. Outputs: the values, if there are two, and the indices.
template <bool kGreatest>
std::unique_ptr<Kernel> MakeArg(const Call& call) {
  return MakeArgReduceKernel(call, AxesOf(call, 0), kGreatest);
}

}  // namespace

std::span<const KernelEntry> ReductionKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnReduceSum", &MakePlain<Combine::kSum, 0>},
      {"aclnnReduceNansum", &MakeNansum},
      {"aclnnMean", &MakeMean},
      {"aclnnMeanV2", &MakeMeanV2},
      {"aclnnAmax", &MakePlain<Combine::kGreatest, 0>},
      {"aclnnAmin", &MakePlain<Combine::kLeast, 0>},
      {"aclnnMax", &MakePlain<Combine::kGreatest, kAllAxes>},
      {"aclnnMin", &MakePlain<Combine::kLeast, kAllAxes>},
      {"aclnnProd", &MakePlain<Combine::kProduct, kAllAxes>},
      {"aclnnProdDim", &MakePlain<Combine::kProduct, 0>},
      {"aclnnAny", &MakeAny},
      {"aclnnAll", &MakeAll},
      {"aclnnNorm", &MakeNorm},
      {"aclnnLinalgVectorNorm", &MakeNorm},
      {"aclnnVar", &MakeVar<false>},
      {"aclnnVarCorrection", &MakeVar<false>},
      {"aclnnVarMean", &MakeVar<false>},
      {"aclnnStd", &MakeVar<true>},
      {"aclnnStdMeanCorrection", &MakeVar<true>},
      {"aclnnLogSumExp", &MakeLogSumExp},
      {"aclnnMaxDim", &MakeArg<true>},
      {"aclnnMinDim", &MakeArg<false>},
      {"aclnnArgMax", &MakeArg<true>},
      {"aclnnArgMin", &MakeArg<false>},
  };
  return kEntries;
}

}  // namespace opserve::kernels
