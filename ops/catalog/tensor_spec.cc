#include "ops/catalog/tensor_spec.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace opserve::catalog {
namespace {

struct DtypeFacts {
  absl::string_view name;
  int64_t bytes;
  aclDataType acl;
};

DtypeFacts FactsOf(Dtype dtype) {
  switch (dtype) {
    case v1::DATA_TYPE_FLOAT:
      return {"FLOAT", 4, ACL_FLOAT};
    case v1::DATA_TYPE_FLOAT16:
      return {"FLOAT16", 2, ACL_FLOAT16};
    case v1::DATA_TYPE_BF16:
      return {"BF16", 2, ACL_BF16};
    case v1::DATA_TYPE_DOUBLE:
      return {"DOUBLE", 8, ACL_DOUBLE};
    default:  // open enum: a client may send any number
      return {"UNSPECIFIED", 0, ACL_DT_UNDEFINED};
  }
}

}  // namespace

absl::string_view DtypeName(Dtype dtype) { return FactsOf(dtype).name; }
int64_t DtypeBytes(Dtype dtype) { return FactsOf(dtype).bytes; }
aclDataType ToAclDataType(Dtype dtype) { return FactsOf(dtype).acl; }

std::string ShapeText(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

absl::Status CheckShape(Dtype dtype, absl::Span<const int64_t> shape) {
  if (shape.size() > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", shape.size(), " is above the highest, ", kMaxRank));
  }
  int64_t bytes = std::max<int64_t>(DtypeBytes(dtype), 1);
  for (int64_t extent : shape) {
    if (extent < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", ShapeText(shape), " has a negative extent"));
    }
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", ShapeText(shape), " takes 2^63 bytes or more"));
    }
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

bool Broadcast(absl::Span<const int64_t> a, absl::Span<const int64_t> b, Shape* result) {
  if (a.size() < b.size()) std::swap(a, b);
  const size_t shift = a.size() - b.size();
  Shape common(a.begin(), a.end());
  for (size_t axis = 0; axis < b.size(); ++axis) {
    int64_t& extent = common[shift + axis];
    if (extent == 1) {
      extent = b[axis];
    } else if (b[axis] != 1 && b[axis] != extent) {
      return false;
    }
  }
  *result = std::move(common);
  return true;
}

}  // namespace opserve::catalog
