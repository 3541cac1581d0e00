#include "ops/catalog/dtypes.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace opserve::catalog {
namespace {

struct Row {
  absl::string_view name;
  int64_t bytes;
  aclDataType dtype;
};

constexpr Row kRows[] = {
#define OPSERVE_DTYPE(name, bytes, element, acl, ...) {#name, bytes, static_cast<aclDataType>(acl)},
#include "proto/dtypes/table.inc"
};

const Row* Find(aclDataType dtype) {
  const Row* row = std::find_if(std::begin(kRows), std::end(kRows),
                                [&](const Row& r) { return r.dtype == dtype; });
  return row == std::end(kRows) ? nullptr : row;
}

}  // namespace

const std::vector<aclDataType>& AllDtypes() {
  // Never destroyed, so that it may be used at any time.
  static const auto& dtypes = *[] {
    auto* all = new std::vector<aclDataType>;
    for (const Row& row : kRows) all->push_back(row.dtype);
    return all;
  }();
  return dtypes;
}

std::string DtypeName(aclDataType dtype) {
  const Row* row = Find(dtype);
  return row != nullptr ? std::string(row->name) : absl::StrCat("dtype ", static_cast<int>(dtype));
}

aclDataType DtypeOfName(absl::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  return ACL_DT_UNDEFINED;
}

// 0 for a dtype that is not in the table.
int64_t DtypeBytes(aclDataType dtype) {
  const Row* row = Find(dtype);
  return row == nullptr ? 0 : row->bytes;
}

DtypeKind KindOf(aclDataType dtype) {
  switch (dtype) {
    case ACL_BOOL:
      return DtypeKind::kBool;
    case ACL_FLOAT:
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_DOUBLE:
      return DtypeKind::kFloating;
    default:
      return DtypeKind::kInteger;
  }
}

aclDataType Promote(aclDataType a, aclDataType b) {
  if (a == b) return a;
  // The order of DtypeKind.
  if (KindOf(a) != KindOf(b)) return KindOf(a) > KindOf(b) ? a : b;
  const int64_t bytes_a = DtypeBytes(a);
  const int64_t bytes_b = DtypeBytes(b);
  if (bytes_a != bytes_b) return bytes_a > bytes_b ? a : b;
  // Neither of two equally wide ones holds the other.
  return KindOf(a) == DtypeKind::kFloating ? ACL_FLOAT : ACL_INT16;
}

}  // namespace opserve::catalog
