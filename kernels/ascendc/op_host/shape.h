// Shapes of tensors, as the checks and the plan need them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace opserve::ascendc {

using Shape = std::vector<int64_t>;

inline constexpr size_t kMaxRank = 8;

// The product of the extents: 1 for rank 0.
int64_t NumElements(const Shape& shape);

// Aligned at the last dim, extents match when they are equal or one of them is 1; the result has
// the other one. Nothing where they do not match.
std::optional<Shape> Broadcast(const Shape& a, const Shape& b);

}  // namespace opserve::ascendc
