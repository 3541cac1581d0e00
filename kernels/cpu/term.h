// Kernels that compute one term per element of the broadcast shape and, where the output is smaller
// than that, sum the terms over the axes along which it was broadcast.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/cpu/kernel.h"

namespace opserve::kernels {

// The computation: terms[i] from inputs[0][i], inputs[1][i], ... and a constant factor. Arrays of
// `count` contiguous elements; `terms` overlaps no input.
template <typename T>
using TermBlock = void (*)(const T* const* inputs, T scale, int64_t count, T* terms);

// An input that terms are computed from, and its place among the addresses given to Kernel::Run.
struct TermInput {
  Layout layout;
  int position = 0;
};

// out = terms, or their sums. `out` broadcasts to the broadcast of the inputs' shapes and its own.
// Sums are taken in T, their order depends on the layouts only.
template <typename T>
std::unique_ptr<Kernel> MakeTermKernel(std::span<const TermInput> inputs, const Layout& out,
                                       T scale, TermBlock<T> block);

}  // namespace opserve::kernels
