// The inner loops: a computation over blocks of contiguous elements of any dtype, widened and
// narrowed in registers.
//
// A computation ("term") is a class with
//   static constexpr int kInputs;
//   template <typename V> static V Value(const V* inputs, V scale);
// where V is FloatVector, or double where all tensors are.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/stream.h"

namespace opserve::kernels {

// What elements are computed in, one by one.
template <typename Element>
using Computed = std::conditional_t<std::is_same_v<Element, double>, double, float>;

// How far ahead of the computation the inputs of streamed outputs are fetched. (The processor's own
// prefetching ends at each page.)
inline constexpr int kPrefetchElements = 256;

// Two registers' worth of elements: instructions on one fill the waiting times of the other.
template <typename Element>
inline constexpr int kBlockStep = 2 * kLanesOf<Element>;

// The factor of elements i and following: the same for all, or one for each.
[[gnu::always_inline]] inline FloatVector ScaleAt(float scale, int64_t /*i*/) {
  return FloatVector{} + scale;
}
[[gnu::always_inline]] inline double ScaleAt(double scale, int64_t /*i*/) { return scale; }
[[gnu::always_inline]] inline FloatVector ScaleAt(const float* scales, int64_t i) {
  return Load(scales + i);
}

template <typename Term, bool kStreams, typename S, typename O, typename Scale>
[[gnu::always_inline]] inline void ComputeStep(const S* const* inputs, Scale scale, int64_t i,
                                               O* terms) {
  using V = Register<S>;
  constexpr int kWidth = kLanesOf<S>;
  V values[2][Term::kInputs];
  for (int k = 0; k < Term::kInputs; ++k) {
    values[0][k] = Load(inputs[k] + i);
    values[1][k] = Load(inputs[k] + i + kWidth);
  }
  const V first = Term::Value(values[0], ScaleAt(scale, i));
  const V second = Term::Value(values[1], ScaleAt(scale, i + kWidth));
  const auto first_packed = Packed(first, terms);
  const auto second_packed = Packed(second, terms);
  if constexpr (kStreams) {
    for (int k = 0; k < Term::kInputs; ++k) {
      __builtin_prefetch(inputs[k] + i + kPrefetchElements);
    }
    StoreStreamed(first_packed, terms + i);
    StoreStreamed(second_packed, terms + i + kWidth);
  } else {
    std::memcpy(terms + i, &first_packed, sizeof(first_packed));
    std::memcpy(terms + i + kWidth, &second_packed, sizeof(second_packed));
  }
}

template <typename Term, bool kStreams, typename S, typename O, typename Scale>
void ComputeBlock(const S* const* inputs, Scale scale, int64_t count, O* __restrict terms) {
  constexpr int kStep = kBlockStep<S>;
  const S* sources[Term::kInputs];
  for (int k = 0; k < Term::kInputs; ++k) sources[k] = inputs[k];
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    ComputeStep<Term, kStreams>(sources, scale, i, terms);
  }
  if (i == count) return;
  // The rest in the same way, so that the bits of a result do not depend on its place.
  const int64_t rest = count - i;
  S padded[Term::kInputs][kStep] = {};
  for (int k = 0; k < Term::kInputs; ++k) {
    std::memcpy(padded[k], sources[k] + i, rest * sizeof(S));
    sources[k] = padded[k];
  }
  O results[kStep];
  if constexpr (std::is_pointer_v<Scale>) {
    Computed<S> scales[kStep] = {};
    std::memcpy(scales, scale + i, rest * sizeof(scales[0]));
    ComputeStep<Term, false>(sources, static_cast<Scale>(scales), 0, results);
  } else {
    ComputeStep<Term, false>(sources, scale, 0, results);
  }
  std::memcpy(terms + i, results, rest * sizeof(O));
}

// terms[i] = the term of inputs[0][i], inputs[1][i], ... and `scale`, for `count` elements, or with
// a pointer of scale[i]. `terms` overlaps no input. `streams`: the output is to go past the caches.
template <typename Term, typename S, typename O, typename Scale = Computed<S>>
void Block(const S* const* inputs, Scale scale, int64_t count, bool streams, O* terms) {
  if (streams && CanStream(terms)) {
    ComputeBlock<Term, true>(inputs, scale, count, terms);
  } else {
    ComputeBlock<Term, false>(inputs, scale, count, terms);
  }
}

}  // namespace opserve::kernels
