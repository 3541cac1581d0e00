// Activation functions and their gradients. The forms are chosen so that nothing overflows or
// cancels out on the way to a result that is in range.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>

#include "kernels/cpu/error_function.h"
#include "kernels/cpu/exact_product.h"
#include "kernels/cpu/float64.h"
#include "kernels/cpu/formula.h"
#include "kernels/cpu/guarded.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/sigmoid.h"
#include "kernels/cpu/tanh_gelu.h"

namespace opserve::kernels {
namespace {

using enum Arithmetic;

constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;
constexpr double kFastGelu = 1.702;

constexpr auto kRelu = []<typename T>(T x, const T*) { return x > 0 || x != x ? x : T{0}; };
constexpr auto kThreshold = []<typename T>(T x, const T* p) { return x <= p[0] ? p[1] : x; };
constexpr auto kThresholdBackward = []<typename T>(T gradient, T x, const T* p) {
  return x <= p[0] ? T{0} : gradient;
};

constexpr auto kGelu = []<typename T>(T x, const T*) { return Gelu(x); };
constexpr auto kGeluBackward = []<typename T>(T gradient, T x, const T*) {
  return GeluGradient(gradient, x);
};
constexpr auto kGeluTanh = []<typename T>(T x, const T*) { return TanhGelu(x); };
constexpr auto kGeluTanhBackward = []<typename T>(T gradient, T x, const T*) {
  return TanhGeluGradient(gradient, x);
};

constexpr auto kSilu = []<typename T>(T x, const T*) { return TimesSigmoid(x, x); };
constexpr auto kSiluBackward = []<typename T>(T gradient, T x, const T*) {
  return SwishGradientAt(gradient, x);
};
// Parameters: beta, and what rounding it has left of it.
constexpr auto kSwish = []<typename T>(T x, const T* p) {
  const ExactProduct<T> z(p[0], p[1], x);
  return TimesSigmoid(x, z.high, z.low);
};
constexpr auto kSwishBackward = []<typename T>(T gradient, T x, const T* p) {
  const ExactProduct<T> z(p[0], p[1], x);
  return SwishGradientAt(gradient, z.high, z.low);
};

constexpr auto kSigmoid = []<typename T>(T x, const T*) { return SigmoidOf(x); };
constexpr auto kSigmoidBackward = []<typename T>(T gradient, T y, const T*) {
  return gradient * ((1 - y) * y);
};
constexpr auto kTanh = []<typename T>(T x, const T*) { return Tanh(x); };
constexpr auto kTanhBackward = []<typename T>(T gradient, T y, const T*) {
  return gradient * ((1 - y) * (1 + y));
};
constexpr auto kLogSigmoid = []<typename T>(T x, const T*) { return -Softplus(-x); };
constexpr auto kLogSigmoidBackward = []<typename T>(T gradient, T x, const T*) {
  return TimesSigmoid(gradient, -x);
};

// Linear above the threshold. Parameters: beta and the threshold, then the rest of beta.
constexpr auto kSoftplus = []<typename T>(T x, const T* p) {
  const ExactProduct<T> z(p[0], p[2], x);
  const T curve = Softplus(z.high, z.low) / p[0];
  return z.high - p[1] + z.low > 0 ? x : curve;
};
constexpr auto kSoftplusBackward = []<typename T>(T gradient, T x, const T* p) {
  const ExactProduct<T> z(p[0], p[2], x);
  const T curve = TimesSigmoid(gradient, z.high, z.low);
  return z.high - p[1] + z.low > 0 ? gradient : curve;
};

// Parameters: alpha, scale, inputScale and, of the gradient, isResult; then the rests of the three.
constexpr auto kElu = []<typename T>(T x, const T* p) {
  const T below = Expm1(x * p[2]) * (p[0] * p[1]);
  return x < 0 ? below : x * p[1];
};
constexpr auto kEluBackward = []<typename T>(T gradient, T x, const T* p) {
  const ExactProduct<T> z(p[2], p[6], x);
  const T of_result = p[2] * (x + p[0] * p[1]);
  const T of_input = p[2] * (p[0] * p[1]) * ExpOfSum(z.high, z.low);
  const T slope = p[3] != 0 ? of_result : of_input;
  return gradient * (x <= 0 ? slope : p[1]);
};
constexpr auto kCelu = []<typename T>(T x, const T* p) {
  const T below = p[0] * Expm1(x / p[0]);
  return x < 0 ? below : x;
};
constexpr auto kSelu = []<typename T>(T x, const T*) {
  const T below = static_cast<T>(kSeluScale * kSeluAlpha) * Expm1(x);
  return x < 0 ? below : static_cast<T>(kSeluScale) * x;
};
constexpr auto kSeluBackward = []<typename T>(T gradient, T y, const T*) {
  return gradient *
         (y > 0 ? static_cast<T>(kSeluScale) : y + static_cast<T>(kSeluScale * kSeluAlpha));
};
constexpr auto kLeakyRelu = []<typename T>(T x, const T* p) { return x > 0 ? x : x * p[0]; };
constexpr auto kLeakyReluBackward = []<typename T>(T gradient, T x, const T* p) {
  return x > 0 ? gradient : gradient * p[0];
};
constexpr auto kPrelu = []<typename T>(T x, T weight, const T*) { return x > 0 ? x : x * weight; };

// 1 from 3 on: 6 times the rounded sixth rounds to it.
template <typename T>
T Hardsigmoid(T x) {
  const T above = x + 3 < 0 ? T{0} : x + 3;
  return (above > 6 ? T{6} : above) * static_cast<T>(1.0 / 6);
}
constexpr auto kHardswish = []<typename T>(T x, const T*) { return x * Hardsigmoid(x); };
constexpr auto kHardswishBackward = []<typename T>(T gradient, T x, const T*) {
  const T middle = gradient * ((x + x + 3) / 6);
  const T right = x > 3 ? gradient : middle;
  return x < -3 ? T{0} : right;
};
constexpr auto kHardsigmoid = []<typename T>(T x, const T*) { return Hardsigmoid(x); };
constexpr auto kHardsigmoidBackward = []<typename T>(T gradient, T x, const T*) {
  return x > -3 && x < 3 ? gradient / 6 : T{0};
};
constexpr auto kHardtanhBackward = []<typename T>(T gradient, T x, const T* p) {
  return x <= p[0] || x >= p[1] ? T{0} : gradient;
};
constexpr auto kHardshrink = []<typename T>(T x, const T* p) {
  return x >= -p[0] && x <= p[0] ? T{0} : x;
};
constexpr auto kShrinkBackward = []<typename T>(T gradient, T x, const T* p) {
  return x >= -p[0] && x <= p[0] ? T{0} : gradient;
};
constexpr auto kSoftshrink = []<typename T>(T x, const T* p) {
  const T below = x < -p[0] ? x + p[0] : T{0};
  const T outside = x > p[0] ? x - p[0] : below;
  return x != x ? x : outside;
};

// tanh(ln(1 + e^x)) = n / d, with e^-|x| so that nothing overflows, and its derivative as another
// quotient, so that sums of both are divided once.
template <typename T>
struct MishTanh {
  explicit MishTanh(T x) {
    const T power = VectorExp(-std::fabs(x));
    const T square = power * power;
    const bool is_positive = x > 0;
    n = is_positive ? 1 + 2 * power : square + 2 * power;
    const T rest = is_positive ? 2 * square : T{2};
    d = n + rest;
    // Of (1 - (n / d)^2) sigmoid(x), where 1 - (n / d)^2 = (2 n + rest) rest / d^2.
    slope_dividend = (2 * n + rest) * rest * (is_positive ? T{1} : power);
    slope_factor = 1 + power;
  }
  T n;
  T d;
  T slope_dividend;
  T slope_factor;  // of the divisor, besides d^2
};
constexpr auto kMish = []<typename T>(T x, const T*) {
  const MishTanh<T> tanh(x);
  return x * (tanh.n / tanh.d);
};
constexpr auto kMishBackward = []<typename T>(T gradient, T x, const T*) {
  const MishTanh<T> tanh(x);
  const T dividend = tanh.n * tanh.d * tanh.slope_factor + x * tanh.slope_dividend;
  return gradient * (dividend / (tanh.d * tanh.d * tanh.slope_factor));
};

// Logits: of all numbers, or of numbers that eps limits.
constexpr auto kLogit = []<typename T>(T x, const T*) { return VectorLogit(x); };
constexpr auto kLimitedLogit = []<typename T>(T x, const T* p) {
  return VectorLogit(Lesser(Greater(x, p[0]), 1 - p[0]));
};
// With what rounding takes from the divisor, x (1 - x), but for its own; -0 stays as it is.
constexpr auto kLogitGrad = []<typename T>(T x, T gradient, const T*) {
  const T complement = 1 - x;
  const T product = x * complement;
  T divisor = product;
  if constexpr (std::is_same_v<T, float>) {
    divisor -= x * (x - (1 - complement)) - ProductRest(x, complement, product);
  }
  const T inside = gradient / divisor;
  return x < 0 || x > 1 ? std::numeric_limits<T>::quiet_NaN() : inside;
};
constexpr auto kLimitedLogitGrad = []<typename T>(T x, T gradient, const T* p) {
  return x < p[0] || x > 1 - p[0] ? T{0} : gradient / (x * (1 - x));
};

std::unique_ptr<Kernel> MakeLogit(const Call& call) {
  // Near 1, limits would lose digits as float32.
  return RealAttribute(call, 0) >= 0 ? Map<1, kPrecise>(kLimitedLogit)(call)
                                     : Map<1, kFloating>(kLogit)(call);
}

std::unique_ptr<Kernel> MakeLogitGrad(const Call& call) {
  return RealAttribute(call, 0) >= 0 ? Map<2, kPrecise>(kLimitedLogitGrad)(call)
                                     : Map<2, kFloating>(kLogitGrad)(call);
}

std::unique_ptr<Kernel> MakeGeluV2(const Call& call) {
  return IntAttribute(call, 0) == 1 ? Map<1, kFloating>(kGeluTanh)(call)
                                    : GuardedMap<1, kFloating>(kGelu, FastGelu{})(call);
}

std::unique_ptr<Kernel> MakeGeluBackwardV2(const Call& call) {
  return TextAttribute(call, 0) == "tanh" ? Map<2, kFloating>(kGeluTanhBackward)(call)
                                          : Map<2, kFloating>(kGeluBackward)(call);
}

// Adds what is left of each parameter after rounding it to float.
void AddRests(Parameters& parameters) {
  for (int i = 0, count = parameters.count; i < count; ++i) {
    const double whole = parameters.reals[i];
    parameters.Add(whole - static_cast<double>(static_cast<float>(whole)));
  }
}

// A formula that takes the rests of its parameters. Those left out are 1.
template <typename Formula, int kInputs>
std::unique_ptr<Kernel> MakeWithRests(const Call& call) {
  MapPlan plan = PlanOf<Formula, kInputs, kFloating>(call, /*absent=*/1);
  AddRests(plan.parameters);
  return MakeMapKernel(call, plan);
}

template <typename Formula, int kInputs>
std::unique_ptr<Kernel> MakeFastGelu(const Call& call) {
  MapPlan plan = PlanOf<Formula, kInputs, kFloating>(call);
  plan.parameters.Add(kFastGelu);
  AddRests(plan.parameters);
  return MakeMapKernel(call, plan);
}

// A lambda below 0 counts as 0.
std::unique_ptr<Kernel> MakeShrinkBackward(const Call& call) {
  MapPlan plan = PlanOf<decltype(kShrinkBackward), 2, kFloating>(call);
  plan.parameters.reals[0] = std::max(plan.parameters.reals[0], 0.0);
  return MakeMapKernel(call, plan);
}

// The weight lies along the second axis.
std::unique_ptr<Kernel> MakePrelu(const Call& call) {
  Call spread = call;
  Layout& weight = spread.inputs[1].front();
  const int64_t num_weights = NumElements(weight);
  const int64_t stride = weight.rank > 0 ? weight.strides[0] : 0;
  weight.rank = 0;
  if (num_weights > 1) {
    weight.rank = Input(call, 0).rank;
    weight.shape.fill(1);
    weight.strides.fill(0);
    weight.shape[1] = num_weights;
    weight.strides[1] = stride;
  }
  return Map<2, kFloating>(kPrelu)(spread);
}

}  // namespace

std::span<const KernelEntry> ActivationKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnRelu", Map<1, kPromoted>(kRelu)},
      {"aclnnInplaceRelu", Map<1, kPromoted>(kRelu)},
      {"aclnnThreshold", Map<1, kPromoted>(kThreshold)},
      {"aclnnInplaceThreshold", Map<1, kPromoted>(kThreshold)},
      {"aclnnThresholdBackward", Map<2, kPromoted>(kThresholdBackward)},
      {"aclnnGelu", GuardedMap<1, kFloating>(kGelu, FastGelu{})},
      {"aclnnGeluV2", &MakeGeluV2},
      {"aclnnGeluBackward", Map<2, kFloating>(kGeluBackward)},
      {"aclnnGeluBackwardV2", &MakeGeluBackwardV2},
      {"aclnnFastGelu", &MakeFastGelu<decltype(kSwish), 1>},
      {"aclnnFastGeluBackward", &MakeFastGelu<decltype(kSwishBackward), 2>},
      {"aclnnSilu", Map<1, kFloating>(kSilu)},
      {"aclnnSiluBackward", Map<2, kFloating>(kSiluBackward)},
      {"aclnnSwish", &MakeWithRests<decltype(kSwish), 1>},
      {"aclnnSwishBackward", &MakeWithRests<decltype(kSwishBackward), 2>},
      {"aclnnSigmoid", Map<1, kFloating>(kSigmoid)},
      {"aclnnInplaceSigmoid", Map<1, kFloating>(kSigmoid)},
      {"aclnnSigmoidBackward", Map<2, kFloating>(kSigmoidBackward)},
      {"aclnnTanh", Map<1, kFloating>(kTanh)},
      {"aclnnInplaceTanh", Map<1, kFloating>(kTanh)},
      {"aclnnTanhBackward", Map<2, kFloating>(kTanhBackward)},
      {"aclnnLogSigmoid", Map<1, kFloating>(kLogSigmoid)},
      {"aclnnLogSigmoidForward", Map<1, kFloating>(kLogSigmoid)},
      {"aclnnLogSigmoidBackward", Map<2, kFloating>(kLogSigmoidBackward)},
      {"aclnnSoftplus", &MakeWithRests<decltype(kSoftplus), 1>},
      {"aclnnSoftplusBackward", &MakeWithRests<decltype(kSoftplusBackward), 2>},
      {"aclnnElu", Map<1, kFloating>(kElu)},
      {"aclnnInplaceElu", Map<1, kFloating>(kElu)},
      {"aclnnEluBackward", &MakeWithRests<decltype(kEluBackward), 2>},
      {"aclnnCelu", Map<1, kFloating>(kCelu)},
      {"aclnnInplaceCelu", Map<1, kFloating>(kCelu)},
      {"aclnnSelu", Map<1, kFloating>(kSelu)},
      {"aclnnInplaceSelu", Map<1, kFloating>(kSelu)},
      {"aclnnSeluBackward", Map<2, kFloating>(kSeluBackward)},
      {"aclnnLeakyRelu", Map<1, kFloating>(kLeakyRelu)},
      {"aclnnInplaceLeakyRelu", Map<1, kFloating>(kLeakyRelu)},
      {"aclnnLeakyReluBackward", Map<2, kFloating>(kLeakyReluBackward)},
      {"aclnnPrelu", &MakePrelu},
      {"aclnnHardswish", Map<1, kFloating>(kHardswish)},
      {"aclnnInplaceHardswish", Map<1, kFloating>(kHardswish)},
      {"aclnnHardswishBackward", Map<2, kFloating>(kHardswishBackward)},
      {"aclnnHardswishBackwardV2", Map<2, kFloating>(kHardswishBackward)},
      {"aclnnHardsigmoid", Map<1, kFloating>(kHardsigmoid)},
      {"aclnnInplaceHardsigmoid", Map<1, kFloating>(kHardsigmoid)},
      {"aclnnHardsigmoidBackward", Map<2, kFloating>(kHardsigmoidBackward)},
      {"aclnnHardtanhBackward", Map<2, kFloating>(kHardtanhBackward)},
      {"aclnnHardshrink", Map<1, kFloating>(kHardshrink)},
      {"aclnnHardshrinkBackward", &MakeShrinkBackward},
      {"aclnnSoftshrink", Map<1, kFloating>(kSoftshrink)},
      {"aclnnSoftshrinkBackward", &MakeShrinkBackward},
      {"aclnnMish", Map<1, kPrecise>(kMish)},
      {"aclnnInplaceMish", Map<1, kPrecise>(kMish)},
      {"aclnnMishBackward", Map<2, kPrecise>(kMishBackward)},
      {"aclnnLogit", &MakeLogit},
      {"aclnnLogitGrad", &MakeLogitGrad},
  };
  return kEntries;
}

}  // namespace opserve::kernels
