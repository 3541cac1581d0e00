// Stores that go past the caches, for outputs that are too large to stay there: a line that is
// written as a whole need not be read first, which saves a quarter to a third of all traffic.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace opserve::kernels {

// Outputs from here on are streamed: smaller ones may be wanted in the cache by whoever reads them.
inline constexpr int64_t kStreamedBytes = int64_t{32} << 20;

// Whether streaming to `address` fills whole cache lines.
inline bool CanStream(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % 64 == 0;
}

// Stores `value`, a vector, past the caches; `to` is aligned to its size. Other threads see it
// after FinishStreaming.
template <typename Vector>
[[gnu::always_inline]] inline void StoreStreamed(Vector value, void* to) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Vector) == 64) {
    return _mm512_stream_si512(static_cast<__m512i*>(to), std::bit_cast<__m512i>(value));
  }
#endif
#if defined(__AVX2__)
  if constexpr (sizeof(Vector) == 32) {
    return _mm256_stream_si256(static_cast<__m256i*>(to), std::bit_cast<__m256i>(value));
  }
#endif
#if defined(__SSE2__)
  if constexpr (sizeof(Vector) == 16) {
    return _mm_stream_si128(static_cast<__m128i*>(to), std::bit_cast<__m128i>(value));
  }
#endif
  std::memcpy(to, &value, sizeof(value));
}

inline void FinishStreaming() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

}  // namespace opserve::kernels
