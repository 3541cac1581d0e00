#include "server/program/tensor_view.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "proto/status/status_macros.h"

namespace opserve::server {
namespace {

// Elements from the storage's start to the last one the view addresses, plus one; for a view
// without elements those before its offset, which must lie in the storage as well. Nothing if that
// does not fit int64, also of a view without elements.
std::optional<int64_t> StorageElements(const Shape& shape, const Shape& strides, int64_t offset) {
  int64_t last = offset;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    int64_t reach = 0;
    if (__builtin_mul_overflow(std::max<int64_t>(shape[axis] - 1, 0), strides[axis], &reach) ||
        __builtin_add_overflow(last, reach, &last)) {
      return std::nullopt;
    }
  }
  if (NumElements(shape) == 0) return offset;
  if (last == INT64_MAX) return std::nullopt;
  return last + 1;
}

// The strides by which nothing is reached, of axes with one element or none, may be any number.
// After the checks they are replaced by small ones, which mean the same: an ACL library need not be
// able to compute with others.
void ReplaceUnusedStrides(BoundInput* bound) {
  const Shape plain = ContiguousStrides(bound->spec.shape);
  const bool is_empty = NumElements(bound->spec.shape) == 0;
  for (size_t axis = 0; axis < plain.size(); ++axis) {
    if (is_empty || bound->spec.shape[axis] == 1) bound->strides[axis] = plain[axis];
  }
}

}  // namespace

absl::Status ReadView(const GivenTensor& tensor, BoundInput* bound) {
  const int64_t element_bytes = DtypeBytes(tensor.dtype);
  if (element_bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("dtype ", static_cast<int>(tensor.dtype), " is not a dtype"));
  }
  OPSERVE_RETURN_IF_ERROR(CheckShape(tensor.dtype, tensor.shape));
  ViewWhole({tensor.dtype, Shape(tensor.shape.begin(), tensor.shape.end())}, bound);
  bound->offset = tensor.offset;
  if (!tensor.strides.empty()) {
    if (tensor.strides.size() != tensor.shape.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(tensor.strides.size(), " strides for shape ", ShapeText(tensor.shape)));
    }
    bound->strides.assign(tensor.strides.begin(), tensor.strides.end());
  }
  if (bound->offset < 0 || std::any_of(bound->strides.begin(), bound->strides.end(),
                                       [](int64_t stride) { return stride < 0; })) {
    return absl::InvalidArgumentError(absl::StrCat("offset ", bound->offset, " and strides ",
                                                   ShapeText(bound->strides),
                                                   " must not be negative"));
  }
  // Only that the extent can be computed with; the caller compares it with the storage.
  const auto elements = StorageElements(bound->spec.shape, bound->strides, bound->offset);
  int64_t bytes = 0;
  if (!elements || __builtin_mul_overflow(*elements, element_bytes, &bytes)) {
    return absl::InvalidArgumentError("the view reaches beyond 2^63 bytes");
  }
  ReplaceUnusedStrides(bound);
  bound->storage_elements = *elements;
  return absl::OkStatus();
}

absl::Status ReadViewOf(const TensorSpec& spec, absl::string_view kind, const GivenTensor& tensor,
                        BoundInput* bound) {
  if (tensor.dtype == v1::DATA_TYPE_UNSPECIFIED && tensor.shape.empty() && IsPlain(tensor)) {
    ViewWhole(spec, bound);
    return absl::OkStatus();
  }
  OPSERVE_RETURN_IF_ERROR(ReadView(tensor, bound));
  if (bound->spec.dtype != spec.dtype) {
    return absl::InvalidArgumentError(absl::StrCat("a view of dtype ", DtypeName(bound->spec.dtype),
                                                   " of a ", kind, " of ", DtypeName(spec.dtype)));
  }
  const auto actual = static_cast<uint64_t>(NumBytes(spec));
  if (StorageBytes(*bound) <= actual) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the view takes ", StorageBytes(*bound), " bytes of a ", kind, " of ", actual));
}

bool IsPlain(const GivenTensor& tensor) { return tensor.strides.empty() && tensor.offset == 0; }

void ViewWhole(const TensorSpec& spec, BoundInput* bound) {
  bound->spec = spec;
  bound->strides = ContiguousStrides(spec.shape);
  bound->offset = 0;
  bound->storage_elements = NumElements(spec.shape);
}

uint64_t StorageBytes(const BoundInput& bound) {
  return static_cast<uint64_t>(bound.storage_elements * DtypeBytes(bound.spec.dtype));
}

}  // namespace opserve::server
