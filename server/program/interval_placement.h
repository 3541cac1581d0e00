// Where pieces of memory lie in one block, when it is known from when to when each is used.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace opserve::server {

// A piece and the steps during which its bytes must not change, both ends included.
struct Interval {
  uint64_t bytes = 0;
  uint32_t first = 0;
  uint32_t last = 0;  // at least `first`
};

// Sets the offset of each interval, so that no two that are used at one step overlap, and returns
// the bytes that all take. Offsets are sums of the intervals' bytes, so a common alignment of these
// is one of the offsets too. The same intervals always get the same offsets.
//
// Up to 2048 intervals the largest are placed first, each as low as possible: rarely more than 1.2
// times the lower bound, the largest sum of bytes at one step. That takes time in the square of
// their number, so more intervals are placed in the order of their steps, forwards and backwards,
// each into the smallest gap that holds it, and the better result counts: within 1.1 of the bound
// for programs that use their long-lived pieces in reverse order, as a backward pass does.
uint64_t PlaceIntervals(absl::Span<const Interval> intervals, absl::Span<uint64_t> offsets);

}  // namespace opserve::server
