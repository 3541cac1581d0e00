#include "shape.h"

#include <algorithm>

namespace opserve::ascendc {

int64_t NumElements(const Shape& shape) {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

std::optional<Shape> Broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (size_t from_end = 1; from_end <= result.size(); ++from_end) {
    const int64_t x = from_end <= a.size() ? a[a.size() - from_end] : 1;
    const int64_t y = from_end <= b.size() ? b[b.size() - from_end] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    result[result.size() - from_end] = x == 1 ? y : x;
  }
  return result;
}

}  // namespace opserve::ascendc
