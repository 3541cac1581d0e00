// Kernels that compute each element of their outputs from the inputs' elements at the same place of
// the broadcast shape.
//
// A formula is a lambda without captures that takes the inputs' elements, then a pointer to the
// parameters, all of the type it is computed in: float, double or int64_t. It returns the output's
// element, or a std::array where there are several outputs.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/cpu/call.h"
#include "kernels/cpu/iteration.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/simd.h"

namespace opserve::kernels {

inline constexpr int kMaxMapInputs = 6;
inline constexpr int kMaxMapOutputs = 4;
inline constexpr int kMaxParameters = 12;

// A formula's loop over contiguous tiles. Outputs may lie where inputs do.
template <typename T>
using MapLoop = void (*)(const T* const* inputs, const T* parameters, int64_t count,
                         T* const* outputs);

// A formula's loops by what it is computed in; null where it never is.
struct MapLoops {
  MapLoop<float> in_float = nullptr;
  MapLoop<double> in_double = nullptr;
  MapLoop<int64_t> in_int = nullptr;
  // Of formulas that make the same of narrow integers as of their lower bits; where all are INT32.
  MapLoop<int32_t> in_int32 = nullptr;
  int num_inputs = 0;
  int num_outputs = 1;
};

enum class ComputeIn : uint8_t { kFloat, kDouble, kInt };

// What formulas are computed in.
enum class Arithmetic : uint8_t {
  kPromoted,  // int64 where no input and no parameter is floating, or no input and no output
  kCompared,  // int64 where no input and no parameter is floating
  kFloating,  // float, or double where an input is
  kPrecise,   // double, or float where all inputs are 16 bits wide: for formulas that lose accuracy
};

constexpr bool IsFloating(Dtype dtype) { return dtype <= Dtype::kDouble; }

// The parameters of a formula, in the two kinds of arithmetic.
struct Parameters {
  std::array<double, kMaxParameters> reals = {};
  std::array<int64_t, kMaxParameters> ints = {};
  int count = 0;
  bool has_floating = false;

  void Add(double value);
  void Add(const Scalar& value);
};

// All the call's attributes that are numbers, in order; where one is left out, `absent`.
Parameters AttributeParameters(const Call& call, double absent = 0);

// What is computed from which tensors of a call.
struct MapPlan {
  MapLoops loops;
  Arithmetic arithmetic = Arithmetic::kPromoted;
  Parameters parameters;
  std::vector<size_t> inputs;   // arguments that are read
  std::vector<size_t> outputs;  // arguments that are written
  // Arguments of one element, whose values are the parameters that follow.
  std::vector<size_t> scalars = {};
};

// Without inputs the outputs' dtypes decide.
ComputeIn ChooseCompute(Arithmetic arithmetic, std::span<const Layout> inputs,
                        std::span<const Layout> outputs, const Parameters& parameters);

// The kernel of arguments with one tensor each.
std::unique_ptr<Kernel> MakeMapKernel(const Call& call, const MapPlan& plan);

// Positions of the tensors of an argument among all addresses that Run is given.
size_t FirstAddress(const std::vector<Tensors>& arguments, size_t argument);

namespace map_internal {

// Elements of a step, two registers' worth: instructions on one fill the waiting times of the
// other.
template <typename T>
inline constexpr int64_t kStep = 2 * sizeof(FloatVector) / sizeof(T);

// In whole registers: a loop over elements might become loads and stores of smaller pieces.
template <typename T>
[[gnu::always_inline]] inline void CopyStep(const T* from, T* to) {
  for (int64_t j = 0; j < kStep<T>; j += kStep<T> / 2) {
    FloatVector some;
    std::memcpy(&some, from + j, sizeof(some));
    std::memcpy(to + j, &some, sizeof(some));
  }
}

template <typename Result>
constexpr size_t OutputsOf() {
  if constexpr (std::is_arithmetic_v<Result>) {
    return 1;
  } else {
    return std::tuple_size_v<Result>;
  }
}

// Computes the elements from `i` on. All are read before the first is written, as the compiler must
// not change the order of the two: outputs may lie where inputs do.
template <typename Formula, typename T, size_t kOutputs, size_t... kInputs>
[[gnu::always_inline]] inline void ComputeStep(const T* const* inputs, const T* parameters,
                                               int64_t i, T* const* outputs,
                                               std::index_sequence<kInputs...>) {
  T values[sizeof...(kInputs) + 1][kStep<T>];
  T results[kOutputs][kStep<T>];
  for (size_t k = 0; k < sizeof...(kInputs); ++k) CopyStep(inputs[k] + i, values[k]);
  OPSERVE_INDEPENDENT_ITERATIONS
  for (int64_t j = 0; j < kStep<T>; ++j) {
    const auto result = Formula{}(values[kInputs][j]..., parameters);
    if constexpr (std::is_arithmetic_v<std::remove_const_t<decltype(result)>>) {
      results[0][j] = static_cast<T>(result);
    } else {
      for (size_t k = 0; k < kOutputs; ++k) results[k][j] = result[k];
    }
  }
  for (size_t k = 0; k < kOutputs; ++k) CopyStep(results[k], outputs[k] + i);
}

// Flattened: a formula that calls a function for each element would not become vectors.
template <typename Formula, typename T, size_t... kInputs>
[[gnu::flatten]] void Loop(const T* const* inputs, const T* given_parameters, int64_t count,
                           T* const* outputs, std::index_sequence<kInputs...> indices) {
  using Result = decltype(Formula{}(inputs[kInputs][0]..., given_parameters));
  constexpr size_t kOutputs = OutputsOf<Result>();
  // Copies, which the outputs cannot overwrite.
  T parameters[kMaxParameters];
  for (int i = 0; i < kMaxParameters; ++i) parameters[i] = given_parameters[i];
  // What depends on them alone: a loop of calls, such as those of powers, is no loop of vectors.
  if constexpr (requires { Formula::Prepare(parameters); }) Formula::Prepare(parameters);
  const T* sources[sizeof...(kInputs) + 1] = {inputs[kInputs]..., nullptr};
  T* destinations[kOutputs];
  for (size_t k = 0; k < kOutputs; ++k) destinations[k] = outputs[k];
  int64_t i = 0;
  for (; i + kStep<T> <= count; i += kStep<T>) {
    ComputeStep<Formula, T, kOutputs>(sources, parameters, i, destinations, indices);
  }
  if (i == count) return;
  // The rest in the same way, so that the bits of a result do not depend on its place.
  const size_t rest_bytes = static_cast<size_t>(count - i) * sizeof(T);
  T padded[sizeof...(kInputs) + 1][kStep<T>] = {};
  T results[kOutputs][kStep<T>];
  for (size_t k = 0; k < sizeof...(kInputs); ++k) {
    std::memcpy(padded[k], sources[k] + i, rest_bytes);
    sources[k] = padded[k];
  }
  T* places[kOutputs];
  for (size_t k = 0; k < kOutputs; ++k) places[k] = results[k];
  ComputeStep<Formula, T, kOutputs>(sources, parameters, 0, places, indices);
  for (size_t k = 0; k < kOutputs; ++k) std::memcpy(destinations[k] + i, results[k], rest_bytes);
}

template <typename Formula, int kInputs, typename T>
void LoopOf(const T* const* inputs, const T* parameters, int64_t count, T* const* outputs) {
  Loop<Formula, T>(inputs, parameters, count, outputs, std::make_index_sequence<kInputs>());
}

}  // namespace map_internal

// The loops of a formula of `kInputs` inputs; without integers if `kTakesInts` is false.
template <typename Formula, int kInputs, bool kTakesInts, int kOutputs = 1>
constexpr MapLoops LoopsOf() {
  MapLoops loops;
  loops.in_float = &map_internal::LoopOf<Formula, kInputs, float>;
  loops.in_double = &map_internal::LoopOf<Formula, kInputs, double>;
  if constexpr (kTakesInts) loops.in_int = &map_internal::LoopOf<Formula, kInputs, int64_t>;
  loops.num_inputs = kInputs;
  loops.num_outputs = kOutputs;
  return loops;
}

// The plan of an operator that reads its first `kInputs` arguments and whose parameters are its
// attributes.
template <typename Formula, int kInputs, Arithmetic kArithmetic, int kOutputs = 1>
MapPlan PlanOf(const Call& call, double absent = 0) {
  constexpr bool kTakesInts =
      kArithmetic == Arithmetic::kPromoted || kArithmetic == Arithmetic::kCompared;
  MapPlan plan{LoopsOf<Formula, kInputs, kTakesInts, kOutputs>(),
               kArithmetic,
               AttributeParameters(call, absent),
               {},
               {}};
  for (size_t i = 0; i < kInputs; ++i) plan.inputs.push_back(i);
  for (size_t i = 0; i < kOutputs; ++i) plan.outputs.push_back(i);
  return plan;
}

template <typename Formula, int kInputs, Arithmetic kArithmetic, int kOutputs = 1>
std::unique_ptr<Kernel> MakeMap(const Call& call) {
  return MakeMapKernel(call, PlanOf<Formula, kInputs, kArithmetic, kOutputs>(call));
}

// A KernelEntry's make function of such an operator.
template <int kInputs, Arithmetic kArithmetic, int kOutputs = 1, typename Formula>
constexpr auto Map(Formula) {
  return &MakeMap<Formula, kInputs, kArithmetic, kOutputs>;
}

}  // namespace opserve::kernels
