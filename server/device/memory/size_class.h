// Sizes that pools round requests up to, so that blocks fit later requests of about the same size.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

namespace opserve::server {

// `bytes` rounded up to a multiple of `alignment`, a power of two.
inline constexpr size_t RoundUp(size_t bytes, size_t alignment) {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

// The smallest class that holds `bytes`: eight classes per power of two from 512 bytes on, so a
// block is at most an eighth larger than asked for (and never under 512 bytes). `bytes` up to 2^62.
inline constexpr size_t SizeClass(size_t bytes) {
  constexpr size_t kSmallest = 512;
  bytes = std::max(bytes, kSmallest);
  const size_t step = std::bit_floor(bytes - 1) / 8;
  return RoundUp(bytes, step);
}

}  // namespace opserve::server
