// Kernels that compute one term per element of the broadcast shape and, where the output is smaller
// than that, sum the terms over the axes along which it was broadcast.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/cpu/block.h"
#include "kernels/cpu/iteration.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/tile.h"

namespace opserve::kernels {

// The place of each input among the addresses given to Kernel::Run.
inline constexpr int kMaxTermInputs = 3;
using TermPositions = std::array<int, kMaxTermInputs>;

// A term's loop over tiles, see Block.
template <typename S, typename O>
using TermBlock = void (*)(const S* const* inputs, Computed<S> scale, int64_t count, bool streams,
                           O* terms);

// `operands`: the inputs' layouts and the output's, to be taken from the addresses at `positions`.
template <typename S, typename O>
std::unique_ptr<Kernel> MakeTermKernelOf(std::span<const Layout> operands,
                                         const TermPositions& positions, Computed<S> scale,
                                         TermBlock<S, O> to_output,
                                         TermBlock<S, Computed<S>> to_sums);

// out = terms (see block.h), or their sums. The last of `operands` is the output; it broadcasts to
// the broadcast of the inputs' shapes and its own. Sums are taken in float, their order depends on
// the layouts only.
template <typename Term>
std::unique_ptr<Kernel> MakeTermKernel(std::span<const Layout> operands,
                                       const TermPositions& positions, double scale) {
  return VisitTileTypes<Term::kTakesDouble>(operands, [&]<typename S, typename O>(S, O) {
    return MakeTermKernelOf<S, O>(operands, positions, static_cast<Computed<S>>(scale),
                                  &Block<Term, S, O>, &Block<Term, S, Computed<S>>);
  });
}

}  // namespace opserve::kernels
