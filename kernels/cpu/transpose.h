// Squares of elements whose rows become columns, in registers.
#pragma once

#include <cstdint>
#include <type_traits>

namespace opserve::kernels {

// Transposes 8 x 8 elements in registers: in three rounds, row i of the result takes turns from
// rows i and i + 4 of the round before.
template <typename T>
void TransposeSquare(const T* from, int64_t from_pitch, T* to, int64_t to_pitch) {
  using Lane = std::conditional_t<sizeof(T) == 2, uint16_t, T>;
  typedef Lane Row __attribute__((vector_size(8 * sizeof(T)), aligned(alignof(T)), may_alias));
  Row a[8];
  Row b[8];
  for (int i = 0; i < 8; ++i) a[i] = *reinterpret_cast<const Row*>(from + i * from_pitch);
  const auto interleave = [](const Row* in, Row* out) {
    for (int i = 0; i < 4; ++i) {
      out[2 * i] = __builtin_shufflevector(in[i], in[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
      out[2 * i + 1] = __builtin_shufflevector(in[i], in[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
  };
  interleave(a, b);
  interleave(b, a);
  interleave(a, b);
  for (int i = 0; i < 8; ++i) *reinterpret_cast<Row*>(to + i * to_pitch) = b[i];
}

}  // namespace opserve::kernels
