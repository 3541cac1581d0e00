// Loops over float32 of formulas that have a fast form, without branches, for most arguments.
//
// A fast form is a class with
//   static bool Takes(arguments..., const float* parameters);
//   static float Of(arguments..., const float* parameters);
// Elements that it does not take are computed by the formula (map.h). Which of the two computes an
// element does not depend on its neighbours.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/cpu/map.h"

namespace opserve::kernels {
namespace guarded_internal {

// The fast form as a formula.
template <typename Fast>
struct FastFormula {
  template <typename... Arguments>
  float operator()(Arguments... arguments) const {
    return Fast::Of(arguments...);
  }
};

template <typename Formula, typename Fast, size_t... kInputs>
void Loop(const float* const* inputs, const float* parameters, int64_t count, float* const* outputs,
          std::index_sequence<kInputs...> indices) {
  constexpr int64_t kBlock = 128;
  float results[kBlock];
  const bool is_in_place = ((inputs[kInputs] == outputs[0]) || ...);
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t num = std::min(kBlock, count - begin);
    const float* const sources[] = {inputs[kInputs] + begin...};
    // The formula may read inputs again.
    float* const places[] = {is_in_place ? results : outputs[0] + begin};
    map_internal::Loop<FastFormula<Fast>, float>(sources, parameters, num, places, indices);
    uint32_t num_others = 0;
    for (int64_t i = 0; i < num; ++i) {
      num_others += Fast::Takes(sources[kInputs][i]..., parameters) ? 0 : 1;
    }
    if (num_others > 0) {
      for (int64_t i = 0; i < num; ++i) {
        if (!Fast::Takes(sources[kInputs][i]..., parameters)) {
          places[0][i] = Formula{}(sources[kInputs][i]..., parameters);
        }
      }
    }
    if (is_in_place) std::copy_n(results, num, outputs[0] + begin);
  }
}

template <typename Formula, typename Fast, int kInputs>
void LoopOf(const float* const* inputs, const float* given_parameters, int64_t count,
            float* const* outputs) {
  float parameters[kMaxParameters];
  std::copy_n(given_parameters, kMaxParameters, parameters);
  Loop<Formula, Fast>(inputs, parameters, count, outputs, std::make_index_sequence<kInputs>());
}

}  // namespace guarded_internal

// As LoopsOf, with a fast form.
template <typename Formula, typename Fast, int kInputs, bool kTakesInts>
constexpr MapLoops GuardedLoopsOf() {
  MapLoops loops = LoopsOf<Formula, kInputs, kTakesInts>();
  loops.in_float = &guarded_internal::LoopOf<Formula, Fast, kInputs>;
  return loops;
}

namespace guarded_internal {

template <typename Formula, typename Fast, int kInputs, Arithmetic kArithmetic>
std::unique_ptr<Kernel> Make(const Call& call) {
  MapPlan plan = PlanOf<Formula, kInputs, kArithmetic>(call);
  plan.loops.in_float = &LoopOf<Formula, Fast, kInputs>;
  return MakeMapKernel(call, plan);
}

}  // namespace guarded_internal

// As Map, with a fast form.
template <int kInputs, Arithmetic kArithmetic, typename Formula, typename Fast>
constexpr auto GuardedMap(Formula, Fast) {
  return &guarded_internal::Make<Formula, Fast, kInputs, kArithmetic>;
}

}  // namespace opserve::kernels
