#include "ops/host_cann/opapi/dtypes.h"

#include "absl/strings/str_cat.h"

namespace opserve::host_cann {
namespace {

enum class Kind { kNone, kBool, kInteger, kFloating, kComplex };

struct DtypeInfo {
  Kind kind = Kind::kNone;
  const char* name = nullptr;
};

DtypeInfo Describe(aclDataType dtype) {
  switch (dtype) {
    case ACL_BOOL:
      return {Kind::kBool, "BOOL"};
    case ACL_INT4:
      return {Kind::kInteger, "INT4"};
    case ACL_INT8:
      return {Kind::kInteger, "INT8"};
    case ACL_INT16:
      return {Kind::kInteger, "INT16"};
    case ACL_INT32:
      return {Kind::kInteger, "INT32"};
    case ACL_INT64:
      return {Kind::kInteger, "INT64"};
    case ACL_UINT1:
      return {Kind::kInteger, "UINT1"};
    case ACL_UINT8:
      return {Kind::kInteger, "UINT8"};
    case ACL_UINT16:
      return {Kind::kInteger, "UINT16"};
    case ACL_UINT32:
      return {Kind::kInteger, "UINT32"};
    case ACL_UINT64:
      return {Kind::kInteger, "UINT64"};
    case ACL_FLOAT:
      return {Kind::kFloating, "FLOAT"};
    case ACL_FLOAT16:
      return {Kind::kFloating, "FLOAT16"};
    case ACL_BF16:
      return {Kind::kFloating, "BF16"};
    case ACL_DOUBLE:
      return {Kind::kFloating, "DOUBLE"};
    case ACL_COMPLEX32:
      return {Kind::kComplex, "COMPLEX32"};
    case ACL_COMPLEX64:
      return {Kind::kComplex, "COMPLEX64"};
    case ACL_COMPLEX128:
      return {Kind::kComplex, "COMPLEX128"};
    default:
      return {};
  }
}

}  // namespace

std::string DtypeName(aclDataType dtype) {
  const char* name = Describe(dtype).name;
  return name != nullptr ? name : absl::StrCat("dtype ", static_cast<int>(dtype));
}

bool CanCast(aclDataType from, aclDataType to) {
  const Kind kind = Describe(from).kind;
  return kind != Kind::kNone && kind <= Describe(to).kind;
}

}  // namespace opserve::host_cann
