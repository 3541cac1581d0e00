// Gated linear units, whose two halves along an axis are multiplied, one of them through an
// activation function; and their gradients.
#include <array>
#include <memory>
#include <span>
#include <utility>

#include "kernels/cpu/error_function.h"
#include "kernels/cpu/exact_product.h"
#include "kernels/cpu/formula.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/sequence.h"
#include "kernels/cpu/sigmoid.h"
#include "kernels/cpu/tanh_gelu.h"

namespace opserve::kernels {
namespace {

using enum Arithmetic;

template <typename T>
using Pair = std::array<T, 2>;

constexpr auto kGlu = []<typename T>(T a, T b, const T*) { return TimesSigmoid(a, b); };
constexpr auto kGluBackward = []<typename T>(T gradient, T a, T b, const T*) -> Pair<T> {
  return {TimesSigmoid(gradient, b), gradient * a * SigmoidSlope(b)};
};
constexpr auto kSwiGlu = []<typename T>(T a, T b, const T*) { return TimesSilu(b, a); };
constexpr auto kSwiGluGrad = []<typename T>(T gradient, T a, T b, const T*) -> Pair<T> {
  const ExactProduct<T> factor(b, T{0}, gradient);
  return {SwishGradientAt(factor.high, a, T{0}, factor.low), TimesSilu(gradient, a)};
};

// The second output is the activated half.
constexpr auto kGeGlu = []<typename T>(T a, T b, const T*) -> Pair<T> {
  const T gelu = Gelu(b);
  return {a * gelu, gelu};
};
constexpr auto kGeGluTanh = []<typename T>(T a, T b, const T*) -> Pair<T> {
  return {TimesTanhGelu(a, b), TanhGelu(b)};
};
constexpr auto kGeGluBackward = []<typename T>(T gradient, T gelu, T a, T b, const T*) -> Pair<T> {
  return {gradient * gelu, GeluGradient(gradient * a, b)};
};
constexpr auto kGeGluTanhBackward = []<typename T>(T gradient, T gelu, T a, T b,
                                                   const T*) -> Pair<T> {
  const ExactProduct<T> factor(a, T{0}, gradient);
  return {gradient * gelu, TanhGeluGradient(factor.high, b, factor.low)};
};

constexpr auto kPreluBackward = []<typename T>(T gradient, T x, T weight, const T*) {
  return x > 0 ? gradient : gradient * weight;
};
constexpr auto kPreluWeightTerm = []<typename T>(T gradient, T x, const T*) {
  return x > 0 ? T{0} : gradient * x;
};

// A half of a tensor along an axis, and how far its first element is from the tensor's.
Layout HalfOf(const Layout& layout, int axis) {
  Layout half = layout;
  half.shape[axis] /= 2;
  return half;
}
Place SecondHalf(Place place, const Layout& layout, int axis) {
  place.byte_offset += layout.shape[axis] / 2 * layout.strides[axis] * ElementBytes(layout.dtype);
  return place;
}

// A formula of `kOthers` arguments, then the halves of the next one. `kSplitsOutput`: its results
// are the halves of the output.
template <typename Formula, Arithmetic kArithmetic, int kOthers, int kOutputs, bool kSplitsOutput>
std::unique_ptr<Kernel> MakeGated(const Call& call) {
  Sequence sequence(call);
  Call halves;
  std::vector<Place> inputs;
  std::vector<Place> outputs;
  const auto add_halves = [](const Layout& layout, Place place, int axis,
                             std::vector<Tensors>& tensors, std::vector<Place>& places) {
    tensors.push_back({HalfOf(layout, axis)});
    tensors.push_back({HalfOf(layout, axis)});
    places.push_back(place);
    places.push_back(SecondHalf(place, layout, axis));
  };
  // The gradients take the halved argument after the outer gradient, and before the activated half.
  const size_t halved = kOthers == 0 ? 0 : 1;
  for (size_t argument = 0; argument <= kOthers; ++argument) {
    if (argument == halved) continue;
    halves.inputs.push_back(call.inputs[argument]);
    inputs.push_back(sequence.Input(argument));
  }
  const Layout& whole = Input(call, halved);
  const int axis = AxisAttribute(IntAttribute(call, 0), whole.rank);
  add_halves(whole, sequence.Input(halved), axis, halves.inputs, inputs);
  if (kSplitsOutput) {
    add_halves(Output(call, 0), sequence.Output(0), axis, halves.outputs, outputs);
  } else {
    for (size_t argument = 0; argument < kOutputs; ++argument) {
      halves.outputs.push_back(call.outputs[argument]);
      outputs.push_back(sequence.Output(argument));
    }
  }
  sequence.Add(Map<kOthers + 2, kArithmetic, kOutputs>(Formula{})(halves), std::move(inputs),
               std::move(outputs));
  return sequence.Finish();
}

// Attributes: dim, and whether tanh approximates.
std::unique_ptr<Kernel> MakeGeGlu(const Call& call) {
  return IntAttribute(call, 1) == 1 ? MakeGated<decltype(kGeGluTanh), kFloating, 0, 2, false>(call)
                                    : MakeGated<decltype(kGeGlu), kPrecise, 0, 2, false>(call);
}

std::unique_ptr<Kernel> MakeGeGluBackward(const Call& call) {
  return IntAttribute(call, 1) == 1
             ? MakeGated<decltype(kGeGluTanhBackward), kFloating, 2, 2, true>(call)
             : MakeGated<decltype(kGeGluBackward), kPrecise, 2, 2, true>(call);
}

// The weight is one number, or one for each position along the second axis.
std::unique_ptr<Kernel> MakePreluBackward(const Call& call) {
  const Layout& input = Input(call, 1);
  const auto spread = [&](const Layout& weight) {
    Layout layout;
    layout.dtype = weight.dtype;
    if (NumElements(weight) == 1) return layout;
    layout.rank = input.rank;
    layout.shape.fill(1);
    layout.shape[1] = weight.shape[0];
    layout.strides[1] = weight.strides[0];
    return layout;
  };
  const Layout weight = spread(Input(call, 2));
  Sequence sequence(call);
  if (NumElements(Output(call, 0)) > 0) {
    sequence.Add(Map<3, kFloating>(kPreluBackward)(
                     {{{Input(call, 0)}, {input}, {weight}}, {{Output(call, 0)}}, {}}),
                 {sequence.Input(0), sequence.Input(1), sequence.Input(2)}, {sequence.Output(0)});
  }
  ReducePlan sum;
  sum.term = LoopsOf<decltype(kPreluWeightTerm), 2, false>();
  sum.arithmetic = kFloating;
  sum.inputs = {0, 1};
  sum.axes = weight.rank == 0 ? ~0u : ~2u;
  sequence.Add(
      MakeReduceKernel({{{Input(call, 0)}, {input}}, {{spread(Output(call, 1))}}, {}}, sum),
      {sequence.Input(0), sequence.Input(1)}, {sequence.Output(1)});
  return sequence.Finish();
}

}  // namespace

std::span<const KernelEntry> GatedKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnGlu", &MakeGated<decltype(kGlu), kFloating, 0, 1, false>},
      {"aclnnGluBackward", &MakeGated<decltype(kGluBackward), kFloating, 1, 2, true>},
      {"aclnnSwiGlu", &MakeGated<decltype(kSwiGlu), kFloating, 0, 1, false>},
      {"aclnnSwiGluGrad", &MakeGated<decltype(kSwiGluGrad), kFloating, 1, 2, true>},
      {"aclnnGeGlu", &MakeGeGlu},
      {"aclnnGeGluBackward", &MakeGeGluBackward},
      {"aclnnPreluBackward", &MakePreluBackward},
  };
  return kEntries;
}

}  // namespace opserve::kernels
