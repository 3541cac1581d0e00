// Arithmetic and functions of one number.
#include <array>
#include <cmath>
#include <memory>
#include <span>

#include "kernels/cpu/error_function.h"
#include "kernels/cpu/exponentials.h"
#include "kernels/cpu/formula.h"
#include "kernels/cpu/guarded.h"
#include "kernels/cpu/logarithms.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/powers.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/remainders.h"
#include "kernels/cpu/trigonometry.h"

namespace opserve::kernels {
namespace {

using enum Arithmetic;

// Two tensors and alpha.
constexpr auto kAdd = []<typename T>(T a, T b, const T* p) { return Plus(a, Times(p[0], b)); };
constexpr auto kSub = []<typename T>(T a, T b, const T* p) { return Minus(a, Times(p[0], b)); };
constexpr auto kRsub = []<typename T>(T a, T b, const T* p) { return Minus(b, Times(p[0], a)); };
// A tensor, a scalar and alpha.
constexpr auto kAdds = []<typename T>(T a, const T* p) { return Plus(a, Times(p[1], p[0])); };
constexpr auto kSubs = []<typename T>(T a, const T* p) { return Minus(a, Times(p[1], p[0])); };
constexpr auto kRsubs = []<typename T>(T a, const T* p) { return Minus(p[0], Times(p[1], a)); };

constexpr auto kMul = []<typename T>(T a, T b, const T*) { return Times(a, b); };
constexpr auto kMuls = []<typename T>(T a, const T* p) { return Times(a, p[0]); };
constexpr auto kDiv = []<typename T>(T a, T b, const T*) { return a / b; };
constexpr auto kDivs = []<typename T>(T a, const T* p) { return a / p[0]; };
constexpr auto kTruncatedDiv = []<typename T>(T a, T b, const T*) {
  return TruncatedQuotient(a, b);
};
constexpr auto kTruncatedDivs = []<typename T>(T a, const T* p) {
  return TruncatedQuotient(a, p[0]);
};
constexpr auto kFlooredDiv = []<typename T>(T a, T b, const T*) { return FlooredQuotient(a, b); };
constexpr auto kFlooredDivs = []<typename T>(T a, const T* p) { return FlooredQuotient(a, p[0]); };
constexpr auto kRemainder = []<typename T>(T a, T b, const T*) { return FlooredRemainder(a, b); };
constexpr auto kRemainders = []<typename T>(T a, const T* p) { return FlooredRemainder(a, p[0]); };
constexpr auto kRemainderOf = []<typename T>(T b, const T* p) { return FlooredRemainder(p[0], b); };
constexpr auto kFmod = []<typename T>(T a, T b, const T*) { return TruncatedRemainder(a, b); };
constexpr auto kFmods = []<typename T>(T a, const T* p) { return TruncatedRemainder(a, p[0]); };
constexpr auto kPow = []<typename T>(T a, T b, const T*) { return Power(a, b); };
constexpr auto kPows = []<typename T>(T a, const T* p) { return Power(a, p[0]); };
constexpr auto kPowOf = []<typename T>(T b, const T* p) { return Power(p[0], b); };
constexpr auto kMaximum = []<typename T>(T a, T b, const T*) { return Greater(a, b); };
constexpr auto kMinimum = []<typename T>(T a, T b, const T*) { return Lesser(a, b); };
constexpr auto kAtan2 = []<typename T>(T a, T b, const T*) { return Atan2(a, b); };

constexpr auto kClamp = []<typename T>(T x, const T* p) { return Limited(x, p[0], p[1]); };
// Where a limit is NaN, so is the result.
constexpr auto kClampByNan = []<typename T>(T x, const T* p) { return x + p[0] + p[1]; };
constexpr auto kClampTensors = []<typename T>(T x, T least, T most, const T*) {
  return Lesser(Greater(x, least), most);
};

constexpr auto kAddcmul = []<typename T>(T x, T a, T b, const T* p) {
  return Plus(x, Times(Times(p[0], a), b));
};
constexpr auto kAddcdiv = []<typename T>(T x, T a, T b, const T* p) {
  if constexpr (std::is_integral_v<T>) {
    return Plus(x, TruncatedQuotient(Times(p[0], a), b));
  } else {
    return x + p[0] * a / b;
  }
};
// From the nearer end, so that both ends are met.
constexpr auto kLerp = []<typename T>(T a, T b, T weight, const T*) {
  return std::fabs(weight) < T{0.5} ? a + weight * (b - a) : b - (b - a) * (1 - weight);
};
constexpr auto kLerps = []<typename T>(T a, T b, const T* p) {
  return std::fabs(p[0]) < T{0.5} ? a + p[0] * (b - a) : b - (b - a) * (1 - p[0]);
};

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
constexpr auto kFloor = []<typename T>(T x, const T*) {
  if constexpr (std::is_integral_v<T>)
    return x;
  else
    return std::floor(x);
};
constexpr auto kCeil = []<typename T>(T x, const T*) {
  if constexpr (std::is_integral_v<T>)
    return x;
  else
    return std::ceil(x);
};
constexpr auto kRound = []<typename T>(T x, const T*) {
  if constexpr (std::is_integral_v<T>)
    return x;
  else
    return std::nearbyint(x);
};
constexpr auto kTrunc = []<typename T>(T x, const T*) {
  if constexpr (std::is_integral_v<T>)
    return x;
  else
    return std::trunc(x);
};
constexpr auto kFrac = []<typename T>(T x, const T*) {
  if constexpr (std::is_integral_v<T>)
    return T{0};
  else
    return x - std::trunc(x);
};

constexpr auto kExp = []<typename T>(T x, const T*) { return Exp(x); };
constexpr auto kExp2 = []<typename T>(T x, const T*) { return Exp2(x); };
constexpr auto kExpm1 = []<typename T>(T x, const T*) { return Expm1(x); };
constexpr auto kLog = []<typename T>(T x, const T*) { return Ln(x); };
constexpr auto kLog2 = []<typename T>(T x, const T*) { return Log2(x); };
constexpr auto kLog10 = []<typename T>(T x, const T*) { return Log10(x); };
constexpr auto kLog1p = []<typename T>(T x, const T*) { return Log1p(x); };
constexpr auto kSqrt = []<typename T>(T x, const T*) { return std::sqrt(x); };
constexpr auto kRsqrt = []<typename T>(T x, const T*) { return 1 / std::sqrt(x); };
constexpr auto kReciprocal = []<typename T>(T x, const T*) { return 1 / x; };
constexpr auto kSquare = []<typename T>(T x, const T*) { return Times(x, x); };
constexpr auto kCube = []<typename T>(T x, const T*) { return Times(Times(x, x), x); };
constexpr auto kSin = []<typename T>(T x, const T*) { return std::sin(x); };
constexpr auto kCos = []<typename T>(T x, const T*) { return std::cos(x); };
constexpr auto kTan = []<typename T>(T x, const T*) { return std::tan(x); };
constexpr auto kAsin = []<typename T>(T x, const T*) { return Asin(x); };
constexpr auto kAcos = []<typename T>(T x, const T*) { return Acos(x); };
constexpr auto kAtan = []<typename T>(T x, const T*) { return Atan(x); };
constexpr auto kSinh = []<typename T>(T x, const T*) { return std::sinh(x); };
constexpr auto kCosh = []<typename T>(T x, const T*) { return std::cosh(x); };
constexpr auto kAsinh = []<typename T>(T x, const T*) { return std::asinh(x); };
constexpr auto kAcosh = []<typename T>(T x, const T*) { return std::acosh(x); };
constexpr auto kAtanh = []<typename T>(T x, const T*) { return Atanh(x); };
constexpr auto kErf = []<typename T>(T x, const T*) { return Erf(x); };
constexpr auto kErfc = []<typename T>(T x, const T*) { return Erfc(x); };

constexpr auto kNanToNum = []<typename T>(T x, const T* p) {
  if constexpr (std::is_integral_v<T>) {
    return x;
  } else {
    const T above = x == kInfinityOf<T> ? p[1] : x;
    const T finite = x == -kInfinityOf<T> ? p[2] : above;
    return x != x ? p[0] : finite;
  }
};

// aclnnDivMod: the quotient as it is, cut off, or rounded down.
constexpr int64_t kModeTruncated = 1;
constexpr int64_t kModeFloored = 2;

std::unique_ptr<Kernel> MakeDivMod(const Call& call) {
  switch (IntAttribute(call, 0)) {
    case kModeTruncated:
      return Map<2, kPromoted>(kTruncatedDiv)(call);
    case kModeFloored:
      return GuardedMap<2, kPromoted>(kFlooredDiv, ShortQuotient<ShortFlooredQuotient>{})(call);
    default:
      return Map<2, kFloating>(kDiv)(call);
  }
}

std::unique_ptr<Kernel> MakeDivMods(const Call& call) {
  switch (IntAttribute(call, 1)) {
    case kModeTruncated:
      return Map<1, kPromoted>(kTruncatedDivs)(call);
    case kModeFloored:
      return GuardedMap<1, kPromoted>(kFlooredDivs, ShortQuotient<ShortFlooredQuotient>{})(call);
    default:
      return Map<1, kFloating>(kDivs)(call);
  }
}

std::unique_ptr<Kernel> MakePowTensorScalar(const Call& call) {
  const ComputeIn compute =
      ChooseCompute(kPromoted, call.inputs[0], call.outputs[0], AttributeParameters(call));
  if (compute == ComputeIn::kInt) return Map<1, kPromoted>(kPows)(call);
  // What frequent exponents mean is exact, and faster than powers.
  const double exponent = RealAttribute(call, 0);
  if (exponent == 2) return Map<1, kFloating>(kSquare)(call);
  if (exponent == 3) return Map<1, kFloating>(kCube)(call);
  if (exponent == 0.5) return Map<1, kFloating>(kSqrt)(call);
  if (exponent == -0.5) return Map<1, kFloating>(kRsqrt)(call);
  if (exponent == -1) return Map<1, kFloating>(kReciprocal)(call);
  return GuardedMap<1, kFloating>(kPows, FastPower{})(call);
}

// `least` and `most`: which attributes are the limits, -1 for none.
template <int kLeast, int kMost>
std::unique_ptr<Kernel> MakeClamp(const Call& call) {
  MapPlan plan{LoopsOf<decltype(kClamp), 1, true>(), kPromoted, {}, {0}, {0}};
  const auto add = [&](int attribute, double none) {
    const auto index = static_cast<size_t>(attribute);
    if (attribute >= 0 && HasAttribute(call, index)) {
      plan.parameters.Add(std::get<Scalar>(call.attributes[index]));
    } else {
      plan.parameters.Add(none);
    }
  };
  add(kLeast, -kInfinityOf<double>);
  add(kMost, kInfinityOf<double>);
  const std::array<double, kMaxParameters>& limits = plan.parameters.reals;
  if (std::isnan(limits[0]) || std::isnan(limits[1])) {
    plan.loops = LoopsOf<decltype(kClampByNan), 1, true>();
  }
  return MakeMapKernel(call, plan);
}

// aclnnClampTensor, either limit of which may be left out.
std::unique_ptr<Kernel> MakeClampTensor(const Call& call) {
  MapPlan plan{LoopsOf<decltype(kClampTensors), 3, true>(), kPromoted, {}, {0, 1, 2}, {0}};
  if (!HasInput(call, 1)) {
    plan.loops = LoopsOf<decltype(kMinimum), 2, true>();
    plan.inputs = {0, 2};
  } else if (!HasInput(call, 2)) {
    plan.loops = LoopsOf<decltype(kMaximum), 2, true>();
    plan.inputs = {0, 1};
  }
  return MakeMapKernel(call, plan);
}

}  // namespace

std::span<const KernelEntry> ArithmeticKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnAdd", Map<2, kPromoted>(kAdd)},
      {"aclnnAdds", Map<1, kPromoted>(kAdds)},
      {"aclnnInplaceAdd", Map<2, kPromoted>(kAdd)},
      {"aclnnInplaceAdds", Map<1, kPromoted>(kAdds)},
      {"aclnnSub", Map<2, kPromoted>(kSub)},
      {"aclnnSubs", Map<1, kPromoted>(kSubs)},
      {"aclnnInplaceSub", Map<2, kPromoted>(kSub)},
      {"aclnnInplaceSubs", Map<1, kPromoted>(kSubs)},
      {"aclnnRsub", Map<2, kPromoted>(kRsub)},
      {"aclnnRsubs", Map<1, kPromoted>(kRsubs)},
      {"aclnnMul", Map<2, kPromoted>(kMul)},
      {"aclnnMuls", Map<1, kPromoted>(kMuls)},
      {"aclnnInplaceMul", Map<2, kPromoted>(kMul)},
      {"aclnnInplaceMuls", Map<1, kPromoted>(kMuls)},
      {"aclnnDiv", Map<2, kFloating>(kDiv)},
      {"aclnnDivs", Map<1, kFloating>(kDivs)},
      {"aclnnInplaceDiv", Map<2, kFloating>(kDiv)},
      {"aclnnInplaceDivs", Map<1, kFloating>(kDivs)},
      {"aclnnDivMod", &MakeDivMod},
      {"aclnnDivMods", &MakeDivMods},
      {"aclnnInplaceDivMod", &MakeDivMod},
      {"aclnnInplaceDivMods", &MakeDivMods},
      {"aclnnFloorDivide",
       GuardedMap<2, kPromoted>(kFlooredDiv, ShortQuotient<ShortFlooredQuotient>{})},
      {"aclnnFloorDivides",
       GuardedMap<1, kPromoted>(kFlooredDivs, ShortQuotient<ShortFlooredQuotient>{})},
      {"aclnnRemainderTensorTensor",
       GuardedMap<2, kPromoted>(kRemainder, ShortQuotient<ShortFlooredRemainder>{})},
      {"aclnnRemainderTensorScalar",
       GuardedMap<1, kPromoted>(kRemainders, ShortQuotient<ShortFlooredRemainder>{})},
      {"aclnnRemainderScalarTensor",
       GuardedMap<1, kPromoted>(kRemainderOf, ShortQuotientOfParameter<ShortFlooredRemainder>{})},
      {"aclnnFmodTensor",
       GuardedMap<2, kPromoted>(kFmod, ShortQuotient<ShortTruncatedRemainder>{})},
      {"aclnnFmodScalar",
       GuardedMap<1, kPromoted>(kFmods, ShortQuotient<ShortTruncatedRemainder>{})},
      {"aclnnPowTensorScalar", &MakePowTensorScalar},
      {"aclnnInplacePowTensorScalar", &MakePowTensorScalar},
      {"aclnnPowTensorTensor", GuardedMap<2, kPromoted>(kPow, FastPower{})},
      {"aclnnInplacePowTensorTensor", GuardedMap<2, kPromoted>(kPow, FastPower{})},
      {"aclnnPowScalarTensor", GuardedMap<1, kPromoted>(kPowOf, FastPowerOfParameter{})},
      {"aclnnMaximum", Map<2, kPromoted>(kMaximum)},
      {"aclnnMinimum", Map<2, kPromoted>(kMinimum)},
      {"aclnnAtan2", Map<2, kFloating>(kAtan2)},
      {"aclnnClamp", &MakeClamp<0, 1>},
      {"aclnnClampMin", &MakeClamp<0, -1>},
      {"aclnnClampMax", &MakeClamp<-1, 0>},
      {"aclnnInplaceClampMin", &MakeClamp<0, -1>},
      {"aclnnInplaceClampMax", &MakeClamp<-1, 0>},
      {"aclnnHardtanh", &MakeClamp<0, 1>},
      {"aclnnInplaceHardtanh", &MakeClamp<0, 1>},
      {"aclnnClampTensor", &MakeClampTensor},
      {"aclnnClampMinTensor", Map<2, kPromoted>(kMaximum)},
      {"aclnnClampMaxTensor", Map<2, kPromoted>(kMinimum)},
      {"aclnnInplaceClampMinTensor", Map<2, kPromoted>(kMaximum)},
      {"aclnnInplaceClampMaxTensor", Map<2, kPromoted>(kMinimum)},
      {"aclnnAddcmul", Map<3, kPromoted>(kAddcmul)},
      {"aclnnInplaceAddcmul", Map<3, kPromoted>(kAddcmul)},
      {"aclnnAddcdiv", Map<3, kPromoted>(kAddcdiv)},
      {"aclnnInplaceAddcdiv", Map<3, kPromoted>(kAddcdiv)},
      {"aclnnLerp", Map<3, kFloating>(kLerp)},
      {"aclnnInplaceLerp", Map<3, kFloating>(kLerp)},
      {"aclnnLerps", Map<2, kFloating>(kLerps)},
      {"aclnnInplaceLerps", Map<2, kFloating>(kLerps)},
      {"aclnnNeg", Map<1, kPromoted>(kNeg)},
      {"aclnnInplaceNeg", Map<1, kPromoted>(kNeg)},
      {"aclnnAbs", Map<1, kPromoted>(kAbs)},
      {"aclnnSign", Map<1, kPromoted>(kSign)},
      {"aclnnFloor", Map<1, kPromoted>(kFloor)},
      {"aclnnInplaceFloor", Map<1, kPromoted>(kFloor)},
      {"aclnnCeil", Map<1, kPromoted>(kCeil)},
      {"aclnnInplaceCeil", Map<1, kPromoted>(kCeil)},
      {"aclnnRound", Map<1, kPromoted>(kRound)},
      {"aclnnInplaceRound", Map<1, kPromoted>(kRound)},
      {"aclnnTrunc", Map<1, kPromoted>(kTrunc)},
      {"aclnnInplaceTrunc", Map<1, kPromoted>(kTrunc)},
      {"aclnnFrac", Map<1, kPromoted>(kFrac)},
      {"aclnnExp", Map<1, kFloating>(kExp)},
      {"aclnnInplaceExp", Map<1, kFloating>(kExp)},
      {"aclnnExp2", Map<1, kFloating>(kExp2)},
      {"aclnnExpm1", Map<1, kFloating>(kExpm1)},
      {"aclnnLog", Map<1, kFloating>(kLog)},
      {"aclnnInplaceLog", Map<1, kFloating>(kLog)},
      {"aclnnLog2", Map<1, kFloating>(kLog2)},
      {"aclnnLog10", Map<1, kFloating>(kLog10)},
      {"aclnnLog1p", Map<1, kFloating>(kLog1p)},
      {"aclnnSqrt", Map<1, kFloating>(kSqrt)},
      {"aclnnInplaceSqrt", Map<1, kFloating>(kSqrt)},
      {"aclnnRsqrt", Map<1, kFloating>(kRsqrt)},
      {"aclnnInplaceRsqrt", Map<1, kFloating>(kRsqrt)},
      {"aclnnReciprocal", Map<1, kFloating>(kReciprocal)},
      {"aclnnInplaceReciprocal", Map<1, kFloating>(kReciprocal)},
      {"aclnnSin", GuardedMap<1, kFloating>(kSin, FastSine{})},
      {"aclnnInplaceSin", GuardedMap<1, kFloating>(kSin, FastSine{})},
      {"aclnnCos", GuardedMap<1, kFloating>(kCos, FastCosine{})},
      {"aclnnInplaceCos", GuardedMap<1, kFloating>(kCos, FastCosine{})},
      {"aclnnTan", GuardedMap<1, kFloating>(kTan, FastTangent{})},
      {"aclnnAsin", Map<1, kFloating>(kAsin)},
      {"aclnnAcos", Map<1, kFloating>(kAcos)},
      {"aclnnAtan", Map<1, kFloating>(kAtan)},
      {"aclnnSinh", Map<1, kFloating>(kSinh)},
      {"aclnnCosh", Map<1, kFloating>(kCosh)},
      {"aclnnAsinh", Map<1, kFloating>(kAsinh)},
      {"aclnnAcosh", Map<1, kFloating>(kAcosh)},
      {"aclnnAtanh", Map<1, kFloating>(kAtanh)},
      {"aclnnErf", Map<1, kFloating>(kErf)},
      {"aclnnInplaceErf", Map<1, kFloating>(kErf)},
      {"aclnnErfc", Map<1, kFloating>(kErfc)},
      {"aclnnNanToNum", Map<1, kPromoted>(kNanToNum)},
  };
  return kEntries;
}

}  // namespace opserve::kernels
