// Element types and shapes: the metadata by which an operator judges its arguments.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "acl/acl_base.h"
#include "opserve/v1/tensor.pb.h"

namespace opserve::catalog {

// Highest rank of a view in the aclnn API.
inline constexpr int kMaxRank = 8;

using Shape = absl::InlinedVector<int64_t, kMaxRank>;
using Dtype = v1::DataType;

// Dtype and shape of a tensor. Shapes of a TensorSpec have at most kMaxRank extents, none negative,
// and a size in bytes that fits int64 (CheckShape).
struct TensorSpec {
  Dtype dtype = v1::DATA_TYPE_UNSPECIFIED;
  Shape shape;

  friend bool operator==(const TensorSpec& a, const TensorSpec& b) = default;
};

// The dtype's facts. A dtype that is not in the protocol: name "UNSPECIFIED", 0 bytes.
absl::string_view DtypeName(Dtype dtype);  // "FLOAT", "FLOAT16", "BF16", "DOUBLE"
int64_t DtypeBytes(Dtype dtype);           // bytes of one element
aclDataType ToAclDataType(Dtype dtype);    // ACL_DT_UNDEFINED if unspecified

// "[2,3]".
std::string ShapeText(absl::Span<const int64_t> shape);

// kInvalidArgument, saying what is wrong, unless `shape` has at most kMaxRank extents, none
// negative, and its elements of `dtype` take less than 2^63 bytes even if extents of 0 were 1.
absl::Status CheckShape(Dtype dtype, absl::Span<const int64_t> shape);

// Elements in a shape that CheckShape accepts. 1 for a 0-d shape.
int64_t NumElements(absl::Span<const int64_t> shape);

// Bytes of a contiguous tensor.
int64_t NumBytes(const TensorSpec& spec);

// Common shape of two shapes aligned at the last axis, where extents match if equal or if one is 1
// (1 against 0 gives 0). False if they do not broadcast; `result` is then unspecified.
bool Broadcast(absl::Span<const int64_t> a, absl::Span<const int64_t> b, Shape* result);

}  // namespace opserve::catalog
