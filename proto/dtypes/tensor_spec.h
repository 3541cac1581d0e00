// Dtype and shape of a tensor, and its size.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/dtypes/dtype.h"

namespace opserve {

// Highest rank of a view in the aclnn API.
inline constexpr int kMaxRank = 8;

using Shape = absl::InlinedVector<int64_t, kMaxRank>;

// Dtype and shape of a tensor. Shapes of a TensorSpec have at most kMaxRank extents, none negative,
// and a size in bytes that fits int64 (CheckShape).
struct TensorSpec {
  Dtype dtype = v1::DATA_TYPE_UNSPECIFIED;
  Shape shape;

  friend bool operator==(const TensorSpec& a, const TensorSpec& b) = default;
};

// "[2,3]".
std::string ShapeText(absl::Span<const int64_t> shape);

// kInvalidArgument, with the fault, unless `shape` has at most kMaxRank extents, none negative, and
// less than 2^59 elements of `dtype` in less than 2^63 bytes, even if extents of 0 were 1.
absl::Status CheckShape(Dtype dtype, absl::Span<const int64_t> shape);

// Elements in a shape that CheckShape accepts. 1 for a 0-d shape.
int64_t NumElements(absl::Span<const int64_t> shape);

// Bytes of a contiguous tensor.
int64_t NumBytes(const TensorSpec& spec);

}  // namespace opserve
