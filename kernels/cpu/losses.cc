// Losses with their reductions, and gradients of losses that are not in files of their own.
#include <cmath>
#include <cstdlib>
#include <memory>
#include <span>

#include "kernels/cpu/exact_product.h"
#include "kernels/cpu/float64.h"
#include "kernels/cpu/formula.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/registry.h"

namespace opserve::kernels {
namespace {

using enum Arithmetic;

constexpr auto kL1 = []<typename T>(T x, T target, const T*) {
  const T difference = Minus(x, target);
  return difference < 0 ? Negative(difference) : difference;
};
constexpr auto kMse = []<typename T>(T x, T target, const T*) {
  return (x - target) * (x - target);
};

// Parameter: beta.
constexpr auto kSmoothL1 = []<typename T>(T x, T target, const T* p) {
  const T distance = std::fabs(x - target);
  return distance < p[0] ? T{0.5} * distance * distance / p[0] : distance - T{0.5} * p[0];
};
// Parameters: beta, the divisor and 1 / beta. `kMultiplies`: beta is a power of two, so that its
// inverse is exact; a product takes less time than a quotient.
template <bool kMultiplies>
struct SmoothL1Backward {
  template <typename T>
  T operator()(T gradient, T x, T target, const T* p) const {
    const T difference = x - target;
    const T scaled = kMultiplies ? difference * p[2] : difference / p[0];
    const T inside = p[0] > 0 ? scaled : T{0};
    const T below = difference <= -p[0] && difference != 0 ? T{-1} : inside;
    const T slope = difference >= p[0] && difference != 0 ? T{1} : below;
    return slope * (gradient / p[1]);
  }
};

// 0 where target is 0.
constexpr auto kKlDiv = []<typename T>(T x, T target, const T*) {
  const T term = target * (VectorLog(target) - x);
  return target == 0 ? T{0} : term;
};
constexpr auto kKlDivLog = []<typename T>(T x, T target, const T*) {
  return VectorExp(target) * (target - x);
};

// Logarithms are limited to -100.
constexpr auto kBce = []<typename T>(T x, T target, const T*) {
  const T of_true = AtLeast(VectorLog(x), T{-100});
  const T of_false = AtLeast(VectorLogOfComplement(x), T{-100});
  return (target - 1) * of_false - target * of_true;
};
constexpr auto kBceWeighted = []<typename T>(T x, T target, T weight, const T* p) {
  return kBce(x, target, p) * weight;
};
// Parameter: the divisor.
constexpr auto kBceBackward = []<typename T>(T gradient, T x, T target, const T* p) {
  const T variance = AtLeast((1 - x) * x, static_cast<T>(1e-12));
  return gradient * (x - target) / (variance * p[0]);
};
constexpr auto kBceBackwardWeighted = []<typename T>(T gradient, T x, T target, T weight,
                                                     const T* p) {
  return kBceBackward(gradient, x, target, p) * weight;
};

// Logits: x, target, then weight and the weight of positives, as far as they are given.
template <typename T>
[[gnu::always_inline]] inline T LogitLoss(T x, T target, T positive_weight) {
  return (1 - target) * x + ((positive_weight - 1) * target + 1) * Softplus(-x);
}
constexpr auto kLogits = []<typename T>(T x, T target, const T*) {
  return LogitLoss(x, target, T{1});
};
constexpr auto kLogitsWeighted = []<typename T>(T x, T target, T weight, const T*) {
  return LogitLoss(x, target, T{1}) * weight;
};
constexpr auto kLogitsPositive = []<typename T>(T x, T target, T positive_weight, const T*) {
  return LogitLoss(x, target, positive_weight);
};
constexpr auto kLogitsBoth = []<typename T>(T x, T target, T weight, T positive_weight, const T*) {
  return LogitLoss(x, target, positive_weight) * weight;
};

// sigmoid(x) (1 - target) - sigmoid(-x) target positive_weight. Parameter: the divisor.
template <typename T>
[[gnu::always_inline]] inline T LogitSlope(T x, T target, T positive_weight) {
  return SigmoidOf(x) * (1 - target) - SigmoidOf(-x) * (target * positive_weight);
}
constexpr auto kLogitsBackward = []<typename T>(T gradient, T x, T target, const T* p) {
  return gradient / p[0] * LogitSlope(x, target, T{1});
};
constexpr auto kLogitsBackwardWeighted = []<typename T>(T gradient, T x, T target, T weight,
                                                        const T* p) {
  return gradient / p[0] * weight * LogitSlope(x, target, T{1});
};
constexpr auto kLogitsBackwardPositive = []<typename T>(T gradient, T x, T target,
                                                        T positive_weight, const T* p) {
  return gradient / p[0] * LogitSlope(x, target, positive_weight);
};
constexpr auto kLogitsBackwardBoth = []<typename T>(T gradient, T x, T target, T weight,
                                                    T positive_weight, const T* p) {
  return gradient / p[0] * weight * LogitSlope(x, target, positive_weight);
};

// The derivative by target, which it does not depend on.
template <typename T>
T LogitTargetSlope(T x, T positive_weight) {
  return (positive_weight - 1) * Softplus(-x) - x;
}
constexpr auto kLogitsTarget = []<typename T>(T gradient, T x, const T* p) {
  return gradient / p[0] * -x;
};
constexpr auto kLogitsTargetWeighted = []<typename T>(T gradient, T x, T weight, const T* p) {
  return gradient / p[0] * weight * -x;
};
constexpr auto kLogitsTargetPositive = []<typename T>(T gradient, T x, T positive_weight,
                                                      const T* p) {
  return gradient / p[0] * LogitTargetSlope(x, positive_weight);
};
constexpr auto kLogitsTargetBoth = []<typename T>(T gradient, T x, T weight, T positive_weight,
                                                  const T* p) {
  return gradient / p[0] * weight * LogitTargetSlope(x, positive_weight);
};

constexpr auto kSoftMargin = []<typename T>(T x, T target, const T*) {
  const ExactProduct<T> z(-x, T{0}, target);
  return Softplus(z.high, z.low);
};
constexpr auto kSoftMarginBackward = []<typename T>(T gradient, T x, T target, const T* p) {
  const ExactProduct<T> z(-x, T{0}, target);
  return TimesSigmoid(gradient / p[0] * -target, z.high, z.low);
};

constexpr auto kDivided = []<typename T>(T sum, const T* p) {
  if constexpr (std::is_integral_v<T>) {
    return TruncatedQuotient(sum, p[0]);
  } else {
    return sum / p[0];
  }
};

// The elements that the inputs broadcast to.
int64_t NumTerms(const Call& call, const std::vector<size_t>& inputs) {
  int64_t count = 1;
  for (int d = 1; d <= kMaxRank; ++d) {  // axes from the last one
    int64_t extent = 1;
    for (size_t argument : inputs) {
      const Layout& layout = Input(call, argument);
      if (d <= layout.rank && layout.shape[layout.rank - d] != 1) {
        extent = layout.shape[layout.rank - d];
      }
    }
    count *= extent;
  }
  return count;
}

// The terms, their sum or their mean.
std::unique_ptr<Kernel> MakeLossOf(const Call& call, const MapPlan& terms, int64_t reduction) {
  if (reduction == kReduceNone) return MakeMapKernel(call, terms);
  ReducePlan plan{
      terms.loops, terms.arithmetic, terms.parameters, terms.inputs, Combine::kSum, {}, {}, ~0u};
  if (reduction == kReduceMean) {
    plan.finish_parameters.Add(static_cast<double>(NumTerms(call, terms.inputs)));
  } else if (reduction == kReduceBatchMean) {
    plan.finish_parameters.Add(ReductionDivisor(reduction, Input(call, 0), Input(call, 1)));
  }
  if (plan.finish_parameters.count > 0) plan.finish = LoopsOf<decltype(kDivided), 1, true>();
  return MakeReduceKernel(call, plan);
}

// A loss of self and target whose first attribute is the reduction.
template <typename Formula, Arithmetic kArithmetic>
std::unique_ptr<Kernel> MakeLoss(const Call& call) {
  MapPlan plan = PlanOf<Formula, 2, kArithmetic>(call);
  plan.parameters = {};
  return MakeLossOf(call, plan, IntAttribute(call, 0));
}

std::unique_ptr<Kernel> MakeSmoothL1(const Call& call) {
  MapPlan plan = PlanOf<decltype(kSmoothL1), 2, kFloating>(call);
  plan.parameters = {};
  plan.parameters.Add(RealAttribute(call, 1));
  return MakeLossOf(call, plan, IntAttribute(call, 0));
}

std::unique_ptr<Kernel> MakeKlDiv(const Call& call) {
  return BoolAttribute(call, 1) ? MakeLoss<decltype(kKlDivLog), kPrecise>(call)
                                : MakeLoss<decltype(kKlDiv), kPrecise>(call);
}

// aclnnMseLossOut reduces the first axis only.
std::unique_ptr<Kernel> MakeMseLossOut(const Call& call) {
  MapPlan plan = PlanOf<decltype(kMse), 2, kFloating>(call);
  plan.parameters = {};
  const int64_t reduction = IntAttribute(call, 0);
  if (reduction == kReduceNone) return MakeMapKernel(call, plan);
  ReducePlan sum{plan.loops, plan.arithmetic, {}, plan.inputs, Combine::kSum, {}, {}, 1u};
  if (reduction == kReduceMean) {
    sum.finish = LoopsOf<decltype(kDivided), 1, true>();
    sum.finish_parameters.Add(ReductionDivisor(kReduceBatchMean, Input(call, 0), Input(call, 1)));
  }
  return MakeReduceKernel(call, sum);
}

// Loops of a formula by which of its two weights are given.
struct WeightedLoops {
  MapLoops none;
  MapLoops weight;
  MapLoops positive;
  MapLoops both;
};

// The plan of a formula with the arguments `inputs` and, as far as they are given, the weights.
MapPlan WeightedPlan(const Call& call, const WeightedLoops& loops, Arithmetic arithmetic,
                     std::vector<size_t> inputs, size_t weight, size_t positive_weight) {
  const bool has_weight = HasInput(call, weight);
  const bool has_positive = positive_weight != weight && HasInput(call, positive_weight);
  MapPlan plan{has_weight ? (has_positive ? loops.both : loops.weight)
                          : (has_positive ? loops.positive : loops.none),
               arithmetic,
               {},
               std::move(inputs),
               {0}};
  if (has_weight) plan.inputs.push_back(weight);
  if (has_positive) plan.inputs.push_back(positive_weight);
  return plan;
}

// A gradient, which the mean divides by the elements of `out`.
std::unique_ptr<Kernel> MakeGradient(const Call& call, MapPlan plan, int64_t reduction) {
  const Layout& out = Output(call, 0);
  plan.parameters.Add(ReductionDivisor(reduction, out, out));
  return MakeMapKernel(call, plan);
}

std::unique_ptr<Kernel> MakeSmoothL1Backward(const Call& call) {
  const double beta = RealAttribute(call, 1);
  int exponent = 0;
  const bool is_power_of_two = std::frexp(beta, &exponent) == 0.5 && std::abs(exponent) < 100;
  MapPlan plan = is_power_of_two ? PlanOf<SmoothL1Backward<true>, 3, kFloating>(call)
                                 : PlanOf<SmoothL1Backward<false>, 3, kFloating>(call);
  plan.parameters = {};
  plan.parameters.Add(beta);
  const Layout& out = Output(call, 0);
  plan.parameters.Add(ReductionDivisor(IntAttribute(call, 0), out, out));
  plan.parameters.Add(1 / beta);
  return MakeMapKernel(call, plan);
}

std::unique_ptr<Kernel> MakeBce(const Call& call) {
  const WeightedLoops loops{
      LoopsOf<decltype(kBce), 2, false>(), LoopsOf<decltype(kBceWeighted), 3, false>(), {}, {}};
  return MakeLossOf(call, WeightedPlan(call, loops, kPrecise, {0, 1}, 2, 2), IntAttribute(call, 0));
}

std::unique_ptr<Kernel> MakeBceBackward(const Call& call) {
  const WeightedLoops loops{LoopsOf<decltype(kBceBackward), 3, false>(),
                            LoopsOf<decltype(kBceBackwardWeighted), 4, false>(),
                            {},
                            {}};
  return MakeGradient(call, WeightedPlan(call, loops, kPrecise, {0, 1, 2}, 3, 3),
                      IntAttribute(call, 0));
}

std::unique_ptr<Kernel> MakeLogits(const Call& call) {
  const WeightedLoops loops{
      LoopsOf<decltype(kLogits), 2, false>(), LoopsOf<decltype(kLogitsWeighted), 3, false>(),
      LoopsOf<decltype(kLogitsPositive), 3, false>(), LoopsOf<decltype(kLogitsBoth), 4, false>()};
  return MakeLossOf(call, WeightedPlan(call, loops, kFloating, {0, 1}, 2, 3),
                    IntAttribute(call, 0));
}

std::unique_ptr<Kernel> MakeLogitsBackward(const Call& call) {
  const WeightedLoops loops{LoopsOf<decltype(kLogitsBackward), 3, false>(),
                            LoopsOf<decltype(kLogitsBackwardWeighted), 4, false>(),
                            LoopsOf<decltype(kLogitsBackwardPositive), 4, false>(),
                            LoopsOf<decltype(kLogitsBackwardBoth), 5, false>()};
  return MakeGradient(call, WeightedPlan(call, loops, kFloating, {0, 1, 2}, 3, 4),
                      IntAttribute(call, 0));
}

std::unique_ptr<Kernel> MakeLogitsTargetBackward(const Call& call) {
  const WeightedLoops loops{LoopsOf<decltype(kLogitsTarget), 2, false>(),
                            LoopsOf<decltype(kLogitsTargetWeighted), 3, false>(),
                            LoopsOf<decltype(kLogitsTargetPositive), 3, false>(),
                            LoopsOf<decltype(kLogitsTargetBoth), 4, false>()};
  return MakeGradient(call, WeightedPlan(call, loops, kFloating, {0, 1}, 3, 4),
                      IntAttribute(call, 0));
}

std::unique_ptr<Kernel> MakeSoftMarginBackward(const Call& call) {
  MapPlan plan = PlanOf<decltype(kSoftMarginBackward), 3, kFloating>(call);
  plan.parameters = {};
  return MakeGradient(call, plan, IntAttribute(call, 0));
}

}  // namespace

std::span<const KernelEntry> LossKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnL1Loss", &MakeLoss<decltype(kL1), kPromoted>},
      {"aclnnMseLoss", &MakeLoss<decltype(kMse), kFloating>},
      {"aclnnMseLossOut", &MakeMseLossOut},
      {"aclnnSmoothL1Loss", &MakeSmoothL1},
      {"aclnnSmoothL1LossBackward", &MakeSmoothL1Backward},
      {"aclnnKlDiv", &MakeKlDiv},
      {"aclnnBinaryCrossEntropy", &MakeBce},
      {"aclnnBinaryCrossEntropyBackward", &MakeBceBackward},
      {"aclnnBinaryCrossEntropyWithLogits", &MakeLogits},
      {"aclnnBinaryCrossEntropyWithLogitsBackward", &MakeLogitsBackward},
      {"aclnnBinaryCrossEntropyWithLogitsTargetBackward", &MakeLogitsTargetBackward},
      {"aclnnSoftMarginLoss", &MakeLoss<decltype(kSoftMargin), kFloating>},
      {"aclnnSoftMarginLossBackward", &MakeSoftMarginBackward},
  };
  return kEntries;
}

}  // namespace opserve::kernels
