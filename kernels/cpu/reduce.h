// Kernels that combine terms, computed from their inputs as by map.h, along axes: to sums,
// products, greatest or least values.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/map.h"

namespace opserve::kernels {

enum class Combine : uint8_t { kSum, kProduct, kGreatest, kLeast };

struct ReducePlan {
  MapLoops term;  // null loops: the terms are the only input's elements
  Arithmetic arithmetic = Arithmetic::kPromoted;
  Parameters parameters;
  std::vector<size_t> inputs;  // arguments that are read
  Combine combine = Combine::kSum;
  MapLoops finish;  // of one input, the combined terms; null loops: none
  Parameters finish_parameters;
  uint32_t axes = ~0u;  // bit d: the terms are combined along axis d of the broadcast shape
};

// The axes of a `dim` argument: all where it has none.
uint32_t ReducedAxes(const std::vector<int64_t>& dims, int rank);

// Elements of `input` that become one when it is reduced along `axes`.
int64_t NumReduced(const Layout& input, uint32_t axes);

// `out` with an axis of extent 1 for each that is reduced, whether it has those axes or not.
Layout WithReducedAxes(const Layout& out, int rank, uint32_t axes);

// The kernel that writes the call's first output, or the one with that index. It has the inputs'
// axes with or without those that are reduced.
std::unique_ptr<Kernel> MakeReduceKernel(const Call& call, const ReducePlan& plan,
                                         size_t output = 0);

}  // namespace opserve::kernels
