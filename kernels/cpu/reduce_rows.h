// Reductions with one loop over a row that computes terms and combines them, where rows are whole:
// terms that are written first and combined then take longer than the reading.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/reduce.h"

namespace opserve::kernels {

// The combined terms of a row of elements.
template <typename T>
using RowLoop = T (*)(const T* elements, int64_t count);

struct RowLoops {
  RowLoop<float> in_float = nullptr;
  RowLoop<double> in_double = nullptr;
};

namespace reduce_rows_internal {

template <typename Formula, typename T>
[[gnu::flatten]] T SumOfRow(const T* elements, int64_t count) {
  return SumOf<T>(count, [&](auto at) {
    const auto x = at(elements);
    return Formula{}(x, &x);  // it has no parameters to read
  });
}

}  // namespace reduce_rows_internal

// Those of the sum of a formula of one input, without parameters.
template <typename Formula>
constexpr RowLoops RowSumsOf() {
  return {&reduce_rows_internal::SumOfRow<Formula, float>,
          &reduce_rows_internal::SumOfRow<Formula, double>};
}

// As MakeReduceKernel, of a plan with one input; `rows` computes the same as the plan's term.
std::unique_ptr<Kernel> MakeReduceKernel(const Call& call, const ReducePlan& plan,
                                         const RowLoops& rows);

}  // namespace opserve::kernels
