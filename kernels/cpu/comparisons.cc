// Comparisons, logic, bits, choices and copies.
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/plan.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {
namespace {

using enum Arithmetic;

constexpr auto kEq = []<typename T>(T a, T b, const T*) { return static_cast<T>(a == b); };
constexpr auto kNe = []<typename T>(T a, T b, const T*) { return static_cast<T>(a != b); };
constexpr auto kGt = []<typename T>(T a, T b, const T*) { return static_cast<T>(a > b); };
constexpr auto kGe = []<typename T>(T a, T b, const T*) { return static_cast<T>(a >= b); };
constexpr auto kLt = []<typename T>(T a, T b, const T*) { return static_cast<T>(a < b); };
constexpr auto kLe = []<typename T>(T a, T b, const T*) { return static_cast<T>(a <= b); };
constexpr auto kEqs = []<typename T>(T a, const T* p) { return static_cast<T>(a == p[0]); };
constexpr auto kNes = []<typename T>(T a, const T* p) { return static_cast<T>(a != p[0]); };
constexpr auto kGts = []<typename T>(T a, const T* p) { return static_cast<T>(a > p[0]); };
constexpr auto kGes = []<typename T>(T a, const T* p) { return static_cast<T>(a >= p[0]); };
constexpr auto kLts = []<typename T>(T a, const T* p) { return static_cast<T>(a < p[0]); };
constexpr auto kLes = []<typename T>(T a, const T* p) { return static_cast<T>(a <= p[0]); };

constexpr auto kAnd = []<typename T>(T a, T b, const T*) {
  return static_cast<T>((a != 0) & (b != 0));
};
constexpr auto kOr = []<typename T>(T a, T b, const T*) {
  return static_cast<T>((a != 0) | (b != 0));
};
constexpr auto kXor = []<typename T>(T a, T b, const T*) {
  return static_cast<T>((a != 0) != (b != 0));
};
constexpr auto kNot = []<typename T>(T a, const T*) { return static_cast<T>(a == 0); };

// Bits are integers'; other loops are never run.
constexpr auto kBitAnd = []<typename T>(T a, T b, const T*) {
  if constexpr (std::is_integral_v<T>)
    return a & b;
  else
    return a;
};
constexpr auto kBitOr = []<typename T>(T a, T b, const T*) {
  if constexpr (std::is_integral_v<T>)
    return a | b;
  else
    return a;
};
constexpr auto kBitXor = []<typename T>(T a, T b, const T*) {
  if constexpr (std::is_integral_v<T>)
    return a ^ b;
  else
    return a;
};
constexpr auto kBitAnds = []<typename T>(T a, const T* p) {
  if constexpr (std::is_integral_v<T>)
    return a & p[0];
  else
    return a;
};
constexpr auto kBitOrs = []<typename T>(T a, const T* p) {
  if constexpr (std::is_integral_v<T>)
    return a | p[0];
  else
    return a;
};
constexpr auto kBitXors = []<typename T>(T a, const T* p) {
  if constexpr (std::is_integral_v<T>)
    return a ^ p[0];
  else
    return a;
};

constexpr auto kIsFinite = []<typename T>(T x, const T*) {
  if constexpr (std::is_integral_v<T>)
    return T{1};
  else
    return static_cast<T>(std::fabs(x) <= std::numeric_limits<T>::max());
};
constexpr auto kIsInf = []<typename T>(T x, const T*) {
  if constexpr (std::is_integral_v<T>)
    return T{0};
  else
    return static_cast<T>(std::fabs(x) > std::numeric_limits<T>::max());
};
constexpr auto kIsPosInf = []<typename T>(T x, const T*) {
  if constexpr (std::is_integral_v<T>)
    return T{0};
  else
    return static_cast<T>(x > std::numeric_limits<T>::max());
};
constexpr auto kIsNegInf = []<typename T>(T x, const T*) {
  if constexpr (std::is_integral_v<T>)
    return T{0};
  else
    return static_cast<T>(x < std::numeric_limits<T>::lowest());
};
constexpr auto kIsNan = []<typename T>(T x, const T*) { return static_cast<T>(x != x); };

constexpr auto kWhere = []<typename T>(T condition, T a, T b, const T*) {
  return condition != 0 ? a : b;
};
constexpr auto kMaskedFill = []<typename T>(T x, T mask, const T* p) {
  return mask != 0 ? p[0] : x;
};
constexpr auto kCopy = []<typename T>(T x, const T*) { return x; };
constexpr auto kFill = []<typename T>(const T* p) { return p[0]; };

// The scalar that 16 bits wide floating tensors are compared with is one of theirs.
template <typename Formula>
std::unique_ptr<Kernel> MakeScalarComparison(const Call& call) {
  MapPlan plan = PlanOf<Formula, 1, kCompared>(call);
  double& scalar = plan.parameters.reals[0];
  if (Input(call, 0).dtype == Dtype::kFloat16) scalar = Widened(Converted<Half>(scalar));
  if (Input(call, 0).dtype == Dtype::kBfloat16) scalar = Widened(Converted<Bfloat16>(scalar));
  return MakeMapKernel(call, plan);
}

template <typename Formula>
constexpr auto ScalarComparison(Formula) {
  return &MakeScalarComparison<Formula>;
}

// Bits are the same in narrow integers.
template <typename Formula, int kInputs>
MapPlan BitsPlan(const Call& call) {
  MapPlan plan = PlanOf<Formula, kInputs, kPromoted>(call);
  plan.loops.in_int32 = &map_internal::LoopOf<Formula, kInputs, int32_t>;
  return plan;
}

template <typename Formula, int kInputs>
std::unique_ptr<Kernel> MakeBits(const Call& call) {
  return MakeMapKernel(call, BitsPlan<Formula, kInputs>(call));
}

template <int kInputs, typename Formula>
constexpr auto Bits(Formula) {
  return &MakeBits<Formula, kInputs>;
}

// A BOOL turns where other integers have all their bits inverted.
std::unique_ptr<Kernel> MakeBitwiseNot(const Call& call) {
  MapPlan plan = BitsPlan<decltype(kBitXors), 1>(call);
  const int64_t inverted = Input(call, 0).dtype == Dtype::kBool ? 1 : -1;
  plan.parameters.Add(Scalar{Dtype::kInt64, static_cast<double>(inverted), inverted});
  return MakeMapKernel(call, plan);
}

// The value that fills the first output: true is what is not 0, not what is truncated to 1.
Parameters FillParameters(const Call& call) {
  Parameters parameters = AttributeParameters(call);
  if (Output(call, 0).dtype == Dtype::kBool) parameters.ints[0] = parameters.reals[0] != 0 ? 1 : 0;
  return parameters;
}

std::unique_ptr<Kernel> MakeMaskedFill(const Call& call) {
  MapPlan plan = PlanOf<decltype(kMaskedFill), 2, kPromoted>(call);
  plan.parameters = FillParameters(call);
  return MakeMapKernel(call, plan);
}

// The value, a tensor of one element, does not decide what is computed in, except for BOOL: true is
// what is not 0, not what is truncated to 1.
std::unique_ptr<Kernel> MakeMaskedFillTensor(const Call& call) {
  MapPlan plan = PlanOf<decltype(kMaskedFill), 2, kPromoted>(call);
  if (Output(call, 0).dtype == Dtype::kBool) plan.arithmetic = kCompared;
  plan.scalars = {2};
  return MakeMapKernel(call, plan);
}

std::unique_ptr<Kernel> MakeFill(const Call& call) {
  MapPlan plan = PlanOf<decltype(kFill), 0, kPromoted>(call);
  plan.parameters = FillParameters(call);
  return MakeMapKernel(call, plan);
}

template <int kValue>
std::unique_ptr<Kernel> MakeConstant(const Call& call) {
  MapPlan plan = PlanOf<decltype(kFill), 0, kPromoted>(call);
  plan.parameters.Add(kValue);
  return MakeMapKernel(call, plan);
}

// Whether the elements follow one another in memory, in order.
bool IsDense(const Layout& layout) {
  const AxisGroup group = GroupOf(layout);
  return group.rank == 1 && (group.strides[0] == 1 || group.extents[0] == 1);
}

// Floating elements that lie alike are converted in registers.
std::unique_ptr<Kernel> MakeCast(const Call& call) {
  const Layout& self = Input(call, 0);
  const Layout& out = Output(call, 0);
  const auto is_float_like = [](Dtype dtype) {
    return IsFloating(dtype) && dtype != Dtype::kDouble;
  };
  const int64_t count = NumElements(out);
  if (!is_float_like(self.dtype) || !is_float_like(out.dtype) || !IsDense(self) || !IsDense(out) ||
      NumElements(self) != count) {
    return Map<1, kPromoted>(kCopy)(call);
  }
  return MakePlannedKernel(
      count, 0,
      [from = self.dtype, to = out.dtype, count](const void* const* inputs, void* const* outputs,
                                                 void* /*workspace*/, TaskRunner& runner) {
        RunTasks(runner, CeilDivide(count, kTaskElements), [&](int64_t task) {
          const int64_t begin = task * kTaskElements;
          const int64_t part = std::min(kTaskElements, count - begin);
          VisitDtype(from, [&]<typename From>(From) {
            VisitDtype(to, [&]<typename To>(To) {
              if constexpr (kIsFloatLike<From> && kIsFloatLike<To>) {
                ConvertBlock(static_cast<const From*>(inputs[0]) + begin, part,
                             static_cast<To*>(outputs[0]) + begin);
              }
            });
          });
        });
      });
}

// selfRef = the second argument
std::unique_ptr<Kernel> MakeCopy(const Call& call) {
  MapPlan plan = PlanOf<decltype(kCopy), 1, kPromoted>(call);
  plan.inputs = {1};
  return MakeMapKernel(call, plan);
}

// A value of the tensor's dtype needs no conversion: it is written from a register, not copied from
// a tile that is full of it.
std::unique_ptr<Kernel> MakeFillTensor(const Call& call) {
  if (Input(call, 1).dtype != Output(call, 0).dtype) return MakeCopy(call);
  MapPlan plan = PlanOf<decltype(kFill), 0, kPromoted>(call);
  plan.scalars = {1};
  return MakeMapKernel(call, plan);
}

}  // namespace

std::span<const KernelEntry> ComparisonKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnEqTensor", Map<2, kCompared>(kEq)},
      {"aclnnNeTensor", Map<2, kCompared>(kNe)},
      {"aclnnGtTensor", Map<2, kCompared>(kGt)},
      {"aclnnGeTensor", Map<2, kCompared>(kGe)},
      {"aclnnLtTensor", Map<2, kCompared>(kLt)},
      {"aclnnLeTensor", Map<2, kCompared>(kLe)},
      {"aclnnInplaceEqTensor", Map<2, kCompared>(kEq)},
      {"aclnnInplaceNeTensor", Map<2, kCompared>(kNe)},
      {"aclnnInplaceGtTensor", Map<2, kCompared>(kGt)},
      {"aclnnInplaceGeTensor", Map<2, kCompared>(kGe)},
      {"aclnnInplaceLtTensor", Map<2, kCompared>(kLt)},
      {"aclnnInplaceLeTensor", Map<2, kCompared>(kLe)},
      {"aclnnEqScalar", ScalarComparison(kEqs)},
      {"aclnnNeScalar", ScalarComparison(kNes)},
      {"aclnnGtScalar", ScalarComparison(kGts)},
      {"aclnnGeScalar", ScalarComparison(kGes)},
      {"aclnnLtScalar", ScalarComparison(kLts)},
      {"aclnnLeScalar", ScalarComparison(kLes)},
      {"aclnnInplaceEqScalar", ScalarComparison(kEqs)},
      {"aclnnInplaceNeScalar", ScalarComparison(kNes)},
      {"aclnnInplaceGtScalar", ScalarComparison(kGts)},
      {"aclnnInplaceGeScalar", ScalarComparison(kGes)},
      {"aclnnInplaceLtScalar", ScalarComparison(kLts)},
      {"aclnnInplaceLeScalar", ScalarComparison(kLes)},
      {"aclnnLogicalAnd", Map<2, kCompared>(kAnd)},
      {"aclnnLogicalOr", Map<2, kCompared>(kOr)},
      {"aclnnLogicalXor", Map<2, kCompared>(kXor)},
      {"aclnnLogicalNot", Map<1, kCompared>(kNot)},
      {"aclnnInplaceLogicalAnd", Map<2, kCompared>(kAnd)},
      {"aclnnInplaceLogicalOr", Map<2, kCompared>(kOr)},
      {"aclnnInplaceLogicalNot", Map<1, kCompared>(kNot)},
      {"aclnnBitwiseAndTensor", Bits<2>(kBitAnd)},
      {"aclnnBitwiseOrTensor", Bits<2>(kBitOr)},
      {"aclnnBitwiseXorTensor", Bits<2>(kBitXor)},
      {"aclnnBitwiseAndScalar", Bits<1>(kBitAnds)},
      {"aclnnBitwiseOrScalar", Bits<1>(kBitOrs)},
      {"aclnnBitwiseXorScalar", Bits<1>(kBitXors)},
      {"aclnnBitwiseNot", &MakeBitwiseNot},
      {"aclnnIsFinite", Map<1, kCompared>(kIsFinite)},
      {"aclnnIsInf", Map<1, kCompared>(kIsInf)},
      {"aclnnIsPosInf", Map<1, kCompared>(kIsPosInf)},
      {"aclnnIsNegInf", Map<1, kCompared>(kIsNegInf)},
      {"aclnnIsNan", Map<1, kCompared>(kIsNan)},
      {"aclnnSWhere", Map<3, kPromoted>(kWhere)},
      {"aclnnMaskedFillScalar", &MakeMaskedFill},
      {"aclnnInplaceMaskedFillScalar", &MakeMaskedFill},
      {"aclnnMaskedFillTensor", &MakeMaskedFillTensor},
      {"aclnnInplaceMaskedFillTensor", &MakeMaskedFillTensor},
      {"aclnnCast", &MakeCast},
      {"aclnnInplaceCopy", &MakeCopy},
      {"aclnnInplaceFillScalar", &MakeFill},
      {"aclnnInplaceFillTensor", &MakeFillTensor},
      {"aclnnInplaceZero", &MakeConstant<0>},
      {"aclnnInplaceOne", &MakeConstant<1>},
  };
  return kEntries;
}

}  // namespace opserve::kernels
