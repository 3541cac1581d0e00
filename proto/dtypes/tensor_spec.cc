#include "proto/dtypes/tensor_spec.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace opserve {
namespace {

// As the host CANN takes them.
constexpr int64_t kMaxElements = INT64_MAX / 16;

}  // namespace

std::string ShapeText(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

absl::Status CheckShape(Dtype dtype, absl::Span<const int64_t> shape) {
  if (shape.size() > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", shape.size(), " is above the highest, ", kMaxRank));
  }
  // An unknown dtype counts as one byte: it is refused elsewhere.
  int64_t bytes = std::max<int64_t>(DtypeBytes(dtype), 1);
  int64_t elements = 1;
  for (int64_t extent : shape) {
    if (extent < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", ShapeText(shape), " has a negative extent"));
    }
    // An extent of 0 counts as 1, so that strides and other products of extents fit as well.
    const int64_t factor = std::max<int64_t>(extent, 1);
    if (__builtin_mul_overflow(bytes, factor, &bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", ShapeText(shape), " takes 2^63 bytes or more"));
    }
    elements *= factor;  // at most `bytes`
  }
  if (elements > kMaxElements) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape ", ShapeText(shape), " has 2^59 elements or more"));
  }
  return absl::OkStatus();
}

int64_t NumElements(absl::Span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

int64_t NumBytes(const TensorSpec& spec) {
  return NumElements(spec.shape) * DtypeBytes(spec.dtype);
}

}  // namespace opserve
