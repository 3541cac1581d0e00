// Stores that go past the caches, for outputs that are too large to stay there: a line that is
// written as a whole need not be read first, which saves a quarter to a third of all traffic.
#pragma once

#include <algorithm>
#include <cstdint>

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace opserve::kernels {

// Outputs from here on are streamed: smaller ones may be wanted in the cache by whoever reads them.
inline constexpr int64_t kStreamedBytes = int64_t{32} << 20;

#ifdef __SSE2__
// Copies one cache line of 64 bytes; `to` is aligned to it.
inline void StreamLine(const char* from, char* to) {
#ifdef __AVX512F__
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
#else
  for (int i = 0; i < 64; i += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
#endif
}
#endif

// to[i] = from[i]. Past the caches if `to` begins and ends with a cache line; then other threads
// see the values after FinishStreaming. No overlap.
template <typename Element>
void StreamBlock(const Element* __restrict from, int64_t count, Element* __restrict to) {
#ifdef __SSE2__
  constexpr int64_t kLineBytes = 64;
  const int64_t bytes = count * static_cast<int64_t>(sizeof(Element));
  if ((reinterpret_cast<uintptr_t>(to) | static_cast<uintptr_t>(bytes)) % kLineBytes == 0) {
    const char* source = reinterpret_cast<const char*>(from);
    char* destination = reinterpret_cast<char*>(to);
    for (int64_t i = 0; i < bytes; i += kLineBytes) StreamLine(source + i, destination + i);
    return;
  }
#endif
  std::copy_n(from, count, to);
}

inline void FinishStreaming() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

}  // namespace opserve::kernels
