// Squares of elements whose rows become columns, in registers.
#pragma once

#include <cstdint>
#include <type_traits>

namespace opserve::kernels {

// Side of the largest square: 16 where a register holds as many elements of four bytes, else 8.
#ifdef __AVX512F__
template <typename T>
inline constexpr int kSquareSide = sizeof(T) == 4 ? 16 : 8;
#else
template <typename T>
inline constexpr int kSquareSide = 8;
#endif

// Transposes kSide x kSide elements in registers, kSide being 8 or 16: in three or four rounds, row
// i of the result takes turns from rows i and i + kSide / 2 of the round before.
template <int kSide = 8, typename T>
void TransposeSquare(const T* from, int64_t from_pitch, T* to, int64_t to_pitch) {
  using Lane = std::conditional_t<sizeof(T) == 2, uint16_t, T>;
  typedef Lane Row __attribute__((vector_size(kSide * sizeof(T)), aligned(alignof(T)), may_alias));
  Row a[kSide];
  Row b[kSide];
  for (int i = 0; i < kSide; ++i) a[i] = *reinterpret_cast<const Row*>(from + i * from_pitch);
  const auto interleave = [](const Row* in, Row* out) {
    for (int i = 0; i < kSide / 2; ++i) {
      const Row first = in[i];
      const Row second = in[i + kSide / 2];
      if constexpr (kSide == 8) {
        out[2 * i] = __builtin_shufflevector(first, second, 0, 8, 1, 9, 2, 10, 3, 11);
        out[2 * i + 1] = __builtin_shufflevector(first, second, 4, 12, 5, 13, 6, 14, 7, 15);
      } else {
        out[2 * i] = __builtin_shufflevector(first, second, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5,
                                             21, 6, 22, 7, 23);
        out[2 * i + 1] = __builtin_shufflevector(first, second, 8, 24, 9, 25, 10, 26, 11, 27, 12,
                                                 28, 13, 29, 14, 30, 15, 31);
      }
    }
  };
  interleave(a, b);
  interleave(b, a);
  interleave(a, b);
  if constexpr (kSide == 16) interleave(b, a);
  const Row* const rows = kSide == 16 ? a : b;
  for (int i = 0; i < kSide; ++i) *reinterpret_cast<Row*>(to + i * to_pitch) = rows[i];
}

}  // namespace opserve::kernels
