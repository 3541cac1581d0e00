// One operator for each tensor of a list.
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cpu/error_function.h"
#include "kernels/cpu/exponentials.h"
#include "kernels/cpu/formula.h"
#include "kernels/cpu/guarded.h"
#include "kernels/cpu/logarithms.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/powers.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/sequence.h"
#include "kernels/cpu/trigonometry.h"
#include "kernels/cpu/unscale.h"

namespace opserve::kernels {
namespace {

using enum Arithmetic;

constexpr auto kPlus = []<typename T>(T x, const T* p) { return Plus(x, p[0]); };
constexpr auto kMinus = []<typename T>(T x, const T* p) { return Minus(x, p[0]); };
constexpr auto kTimes = []<typename T>(T x, const T* p) { return Times(x, p[0]); };
constexpr auto kOver = []<typename T>(T x, const T* p) { return x / p[0]; };
constexpr auto kAtLeast = []<typename T>(T x, const T* p) { return Greater(x, p[0]); };
constexpr auto kAtMost = []<typename T>(T x, const T* p) { return Lesser(x, p[0]); };
constexpr auto kPower = []<typename T>(T x, const T* p) { return Power(x, p[0]); };
constexpr auto kPowerOf = []<typename T>(T x, const T* p) { return Power(p[0], x); };
constexpr auto kAdd = []<typename T>(T a, T b, const T* p) { return Plus(a, Times(p[0], b)); };
constexpr auto kSub = []<typename T>(T a, T b, const T* p) { return Minus(a, Times(p[0], b)); };
constexpr auto kMul = []<typename T>(T a, T b, const T*) { return Times(a, b); };
constexpr auto kDiv = []<typename T>(T a, T b, const T*) { return a / b; };
constexpr auto kMaximum = []<typename T>(T a, T b, const T*) { return Greater(a, b); };
constexpr auto kMinimum = []<typename T>(T a, T b, const T*) { return Lesser(a, b); };
constexpr auto kPow = []<typename T>(T a, T b, const T*) { return Power(a, b); };
constexpr auto kAddcmul = []<typename T>(T x, T a, T b, const T* p) {
  return Plus(x, Times(Times(p[0], a), b));
};
constexpr auto kAddcdiv = []<typename T>(T x, T a, T b, const T* p) { return x + p[0] * a / b; };
// From the nearer end, so that both ends are met.
constexpr auto kLerp = []<typename T>(T a, T b, const T* p) {
  return std::fabs(p[0]) < T{0.5} ? a + p[0] * (b - a) : b - (b - a) * (1 - p[0]);
};
constexpr auto kLerpTensor = []<typename T>(T a, T b, T weight, const T*) {
  return std::fabs(weight) < T{0.5} ? a + weight * (b - a) : b - (b - a) * (1 - weight);
};

constexpr auto kZero = []<typename T>(const T*) { return T{0}; };
constexpr auto kCopy = []<typename T>(T x, const T*) { return x; };
constexpr auto kNeg = []<typename T>(T x, const T*) { return Negative(x); };
constexpr auto kAbs = []<typename T>(T x, const T*) {
  if constexpr (std::is_integral_v<T>) {
    return x < 0 ? Negative(x) : x;
  } else {
    return std::fabs(x);
  }
};
constexpr auto kSign = []<typename T>(T x, const T*) {
  return static_cast<T>((x > 0 ? 1 : 0) - (x < 0 ? 1 : 0));
};
constexpr auto kSqrt = []<typename T>(T x, const T*) { return std::sqrt(x); };
constexpr auto kReciprocal = []<typename T>(T x, const T*) { return 1 / x; };
constexpr auto kExp = []<typename T>(T x, const T*) { return Exp(x); };
constexpr auto kExpm1 = []<typename T>(T x, const T*) { return Expm1(x); };
constexpr auto kLog = []<typename T>(T x, const T*) { return Ln(x); };
constexpr auto kLog1p = []<typename T>(T x, const T*) { return Log1p(x); };
constexpr auto kLog2 = []<typename T>(T x, const T*) { return Log2(x); };
constexpr auto kLog10 = []<typename T>(T x, const T*) { return Log10(x); };
constexpr auto kSin = []<typename T>(T x, const T*) { return std::sin(x); };
constexpr auto kCos = []<typename T>(T x, const T*) { return std::cos(x); };
constexpr auto kTan = []<typename T>(T x, const T*) { return std::tan(x); };
constexpr auto kAsin = []<typename T>(T x, const T*) { return Asin(x); };
constexpr auto kAcos = []<typename T>(T x, const T*) { return Acos(x); };
constexpr auto kAtan = []<typename T>(T x, const T*) { return Atan(x); };
constexpr auto kSinh = []<typename T>(T x, const T*) { return std::sinh(x); };
constexpr auto kCosh = []<typename T>(T x, const T*) { return std::cosh(x); };
constexpr auto kTanh = []<typename T>(T x, const T*) { return Tanh(x); };
constexpr auto kSigmoid = []<typename T>(T x, const T*) { return SigmoidOf(x); };
constexpr auto kErf = []<typename T>(T x, const T*) { return Erf(x); };
constexpr auto kErfc = []<typename T>(T x, const T*) { return Erfc(x); };

// How the factor or addend of all tensors is given.
enum class ScalarIn : uint8_t {
  kAttributes,  // a number, one in a list for each tensor, or none
  kTensor,      // of one element
  kTensorOfAll  // of one element for each tensor
};

// The formula of the `kInputs` first arguments, which are lists, and of a scalar. `Fast`: its fast
// form (guarded.h), or void.
template <typename Formula, typename Fast, int kInputs, Arithmetic kArithmetic, ScalarIn kScalar>
std::unique_ptr<Kernel> MakeForeach(const Call& call) {
  constexpr bool kTakesInts = kArithmetic == kPromoted;
  Sequence sequence(call);
  for (size_t i = 0; i < call.outputs[0].size(); ++i) {
    const Layout& out = call.outputs[0][i];
    if (NumElements(out) == 0) continue;
    Call one{{}, {{out}}, {}};
    MapPlan plan{LoopsOf<Formula, kInputs, kTakesInts>(), kArithmetic, {}, {}, {0}};
    if constexpr (!std::is_void_v<Fast>) {
      plan.loops = GuardedLoopsOf<Formula, Fast, kInputs, kTakesInts>();
    }
    std::vector<Place> places;
    for (size_t argument = 0; argument < kInputs; ++argument) {
      one.inputs.push_back({call.inputs[argument][i]});
      places.push_back(sequence.Input(argument, i));
      plan.inputs.push_back(argument);
    }
    if constexpr (kScalar == ScalarIn::kAttributes) {
      for (const Attribute& attribute : call.attributes) {
        const auto* list = std::get_if<std::vector<double>>(&attribute);
        one.attributes.push_back(list == nullptr ? attribute : Attribute((*list)[i]));
      }
      plan.parameters = AttributeParameters(one);
    } else {
      const Layout& scalar = Input(call, kInputs);
      Place place = sequence.Input(kInputs);
      if (kScalar == ScalarIn::kTensorOfAll && scalar.rank > 0) {
        place.byte_offset =
            static_cast<int64_t>(i) * scalar.strides[scalar.rank - 1] * ElementBytes(scalar.dtype);
      }
      one.inputs.push_back({scalar});
      places.push_back(place);
      plan.scalars = {kInputs};
    }
    sequence.Add(MakeMapKernel(one, plan), std::move(places), {sequence.Output(0, i)});
  }
  return sequence.Finish();
}

template <int kInputs, Arithmetic kArithmetic, ScalarIn kScalar = ScalarIn::kAttributes,
          typename Formula>
constexpr auto Foreach(Formula) {
  return &MakeForeach<Formula, void, kInputs, kArithmetic, kScalar>;
}
template <int kInputs, Arithmetic kArithmetic, ScalarIn kScalar = ScalarIn::kAttributes,
          typename Formula, typename Fast>
constexpr auto Foreach(Formula, Fast) {
  return &MakeForeach<Formula, Fast, kInputs, kArithmetic, kScalar>;
}

// The sum of all inputs of a formula, from the first to the last.
struct SumOfInputs {
  template <typename T, typename... Others>
  T operator()(T sum, Others... others) const {
    ((sum = WithAdded(sum, others)), ...);
    return sum;
  }

 private:
  template <typename T>
  static T WithAdded(T sum, T next) {
    return Plus(sum, next);
  }
  template <typename T>
  static T WithAdded(T sum, const T* /*parameters*/) {
    return sum;
  }
};

// The sum of all tensors of a list, which broadcast, from the first to the last: of as many at a
// time as a kernel takes, so that few sums are written only to be read again.
std::unique_ptr<Kernel> MakeListSum(const Call& call) {
  static constexpr decltype(&MakeMap<SumOfInputs, 1, kPromoted>) kSums[kMaxMapInputs] = {
      Map<1, kPromoted>(SumOfInputs{}), Map<2, kPromoted>(SumOfInputs{}),
      Map<3, kPromoted>(SumOfInputs{}), Map<4, kPromoted>(SumOfInputs{}),
      Map<5, kPromoted>(SumOfInputs{}), Map<6, kPromoted>(SumOfInputs{})};
  const Tensors& tensors = call.inputs[0];
  const Layout& out = Output(call, 0);
  Sequence sequence(call);
  const bool is_floating = IsFloating(tensors[0].dtype);
  const Layout between =
      Contiguous(out, is_floating ? ScratchDtype(tensors[0].dtype) : Dtype::kInt64);
  const Place scratch = tensors.size() > kMaxMapInputs ? sequence.Scratch(between) : Place{};
  for (size_t i = 0; i < tensors.size();) {
    Call part;
    std::vector<Place> places;
    if (i > 0) {
      part.inputs.push_back({between});
      places.push_back(scratch);
    }
    for (; i < tensors.size() && places.size() < kMaxMapInputs; ++i) {
      part.inputs.push_back({tensors[i]});
      places.push_back(sequence.Input(0, i));
    }
    const bool is_last = i == tensors.size();
    part.outputs.push_back({is_last ? out : between});
    const auto make = kSums[places.size() - 1];
    sequence.Add(make(part), std::move(places), {is_last ? sequence.Output(0) : scratch});
  }
  return sequence.Finish();
}

// Attribute: the order. An output for each tensor.
std::unique_ptr<Kernel> MakeNorms(const Call& call) {
  Sequence sequence(call);
  for (size_t i = 0; i < call.inputs[0].size(); ++i) {
    const Attribute all_axes = std::vector<int64_t>{};
    const Call one{{{call.inputs[0][i]}},
                   {{call.outputs[0][i]}},
                   {call.attributes[0], all_axes, Attribute(false)}};
    sequence.Add(MakeKernel("aclnnNorm", one), {sequence.Input(0, i)}, {sequence.Output(0, i)});
  }
  return sequence.Finish();
}

}  // namespace

std::span<const KernelEntry> ForeachKernels() {
  using enum ScalarIn;
  static constexpr KernelEntry kEntries[] = {
      {"aclnnForeachAddScalar", Foreach<1, kPromoted, kTensor>(kPlus)},
      {"aclnnForeachAddScalarV2", Foreach<1, kPromoted>(kPlus)},
      {"aclnnForeachAddScalarList", Foreach<1, kPromoted>(kPlus)},
      {"aclnnForeachAddList", Foreach<2, kPromoted, kTensor>(kAdd)},
      {"aclnnForeachAddListV2", Foreach<2, kPromoted>(kAdd)},
      {"aclnnForeachSubScalar", Foreach<1, kPromoted, kTensor>(kMinus)},
      {"aclnnForeachSubScalarV2", Foreach<1, kPromoted>(kMinus)},
      {"aclnnForeachSubScalarList", Foreach<1, kPromoted>(kMinus)},
      {"aclnnForeachSubList", Foreach<2, kPromoted, kTensor>(kSub)},
      {"aclnnForeachSubListV2", Foreach<2, kPromoted>(kSub)},
      {"aclnnForeachMulScalar", Foreach<1, kPromoted, kTensor>(kTimes)},
      {"aclnnForeachMulScalarV2", Foreach<1, kPromoted>(kTimes)},
      {"aclnnForeachMulScalarList", Foreach<1, kPromoted>(kTimes)},
      {"aclnnForeachMulList", Foreach<2, kPromoted>(kMul)},
      {"aclnnForeachDivScalar", Foreach<1, kFloating, kTensor>(kOver)},
      {"aclnnForeachDivScalarV2", Foreach<1, kFloating>(kOver)},
      {"aclnnForeachDivScalarList", Foreach<1, kFloating>(kOver)},
      {"aclnnForeachDivList", Foreach<2, kFloating>(kDiv)},
      {"aclnnForeachMaximumScalar", Foreach<1, kPromoted, kTensor>(kAtLeast)},
      {"aclnnForeachMaximumScalarV2", Foreach<1, kPromoted>(kAtLeast)},
      {"aclnnForeachMaximumScalarList", Foreach<1, kPromoted>(kAtLeast)},
      {"aclnnForeachMaximumList", Foreach<2, kPromoted>(kMaximum)},
      {"aclnnForeachMinimumScalar", Foreach<1, kPromoted, kTensor>(kAtMost)},
      {"aclnnForeachMinimumScalarV2", Foreach<1, kPromoted>(kAtMost)},
      {"aclnnForeachMinimumScalarList", Foreach<1, kPromoted>(kAtMost)},
      {"aclnnForeachMinimumList", Foreach<2, kPromoted>(kMinimum)},
      {"aclnnForeachPowScalar", Foreach<1, kPromoted, kTensor>(kPower, FastPower{})},
      {"aclnnForeachPowScalarV2", Foreach<1, kPromoted>(kPower, FastPower{})},
      {"aclnnForeachPowScalarList", Foreach<1, kPromoted>(kPower, FastPower{})},
      {"aclnnForeachPowList", Foreach<2, kPromoted>(kPow, FastPower{})},
      {"aclnnForeachPowScalarAndTensor", Foreach<1, kPromoted>(kPowerOf, FastPowerOfParameter{})},
      {"aclnnForeachAddcmulScalar", Foreach<3, kPromoted, kTensor>(kAddcmul)},
      {"aclnnForeachAddcmulScalarV2", Foreach<3, kPromoted>(kAddcmul)},
      {"aclnnForeachAddcmulScalarList", Foreach<3, kPromoted, kTensorOfAll>(kAddcmul)},
      {"aclnnForeachAddcmulList", Foreach<3, kPromoted, kTensorOfAll>(kAddcmul)},
      {"aclnnForeachAddcdivScalar", Foreach<3, kFloating, kTensor>(kAddcdiv)},
      {"aclnnForeachAddcdivScalarV2", Foreach<3, kFloating>(kAddcdiv)},
      {"aclnnForeachAddcdivScalarList", Foreach<3, kFloating, kTensorOfAll>(kAddcdiv)},
      {"aclnnForeachAddcdivList", Foreach<3, kFloating, kTensorOfAll>(kAddcdiv)},
      {"aclnnForeachLerpScalar", Foreach<2, kFloating>(kLerp)},
      {"aclnnForeachLerpList", Foreach<3, kFloating>(kLerpTensor)},
      {"aclnnForeachCopy", Foreach<1, kPromoted>(kCopy)},
      {"aclnnForeachZeroInplace", Foreach<0, kPromoted>(kZero)},
      {"aclnnForeachNeg", Foreach<1, kPromoted>(kNeg)},
      {"aclnnForeachAbs", Foreach<1, kPromoted>(kAbs)},
      {"aclnnForeachSign", Foreach<1, kPromoted>(kSign)},
      {"aclnnForeachSqrt", Foreach<1, kFloating>(kSqrt)},
      {"aclnnForeachReciprocal", Foreach<1, kFloating>(kReciprocal)},
      {"aclnnForeachExp", Foreach<1, kFloating>(kExp)},
      {"aclnnForeachExpm1", Foreach<1, kFloating>(kExpm1)},
      {"aclnnForeachLog", Foreach<1, kFloating>(kLog)},
      {"aclnnForeachLog1p", Foreach<1, kFloating>(kLog1p)},
      {"aclnnForeachLog2", Foreach<1, kFloating>(kLog2)},
      {"aclnnForeachLog10", Foreach<1, kFloating>(kLog10)},
      {"aclnnForeachSin", Foreach<1, kFloating>(kSin)},
      {"aclnnForeachCos", Foreach<1, kFloating>(kCos)},
      {"aclnnForeachTan", Foreach<1, kFloating>(kTan)},
      {"aclnnForeachAsin", Foreach<1, kFloating>(kAsin)},
      {"aclnnForeachAcos", Foreach<1, kFloating>(kAcos)},
      {"aclnnForeachAtan", Foreach<1, kFloating>(kAtan)},
      {"aclnnForeachSinh", Foreach<1, kFloating>(kSinh)},
      {"aclnnForeachCosh", Foreach<1, kFloating>(kCosh)},
      {"aclnnForeachTanh", Foreach<1, kFloating>(kTanh)},
      {"aclnnForeachSigmoid", Foreach<1, kFloating>(kSigmoid)},
      {"aclnnForeachErf", Foreach<1, kFloating>(kErf)},
      {"aclnnForeachErfc", Foreach<1, kFloating>(kErfc)},
      {"aclnnSum", &MakeListSum},
      {"aclnnForeachNorm", &MakeNorms},
      {"aclnnForeachNonFiniteCheckAndUnscale", &MakeCheckAndUnscale},
  };
  return kEntries;
}

}  // namespace opserve::kernels
