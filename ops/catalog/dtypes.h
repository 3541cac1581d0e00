// The dtypes of tensors by their ACL numbers, for rules. The rows are those of
// proto/dtypes/table.inc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "acl/acl_base.h"

namespace opserve::catalog {

// In the order in which mixtures are promoted.
enum class DtypeKind { kBool, kInteger, kFloating };

// All ten, in the order of the wire.
const std::vector<aclDataType>& AllDtypes();

// "FLOAT16"; "dtype 77" for one that is not ours.
std::string DtypeName(aclDataType dtype);

// The dtype of that name, or ACL_DT_UNDEFINED.
aclDataType DtypeOfName(absl::string_view name);

// Bytes of an element. The following require one of the ten.
int64_t DtypeBytes(aclDataType dtype);
DtypeKind KindOf(aclDataType dtype);
inline bool IsFloating(aclDataType dtype) { return KindOf(dtype) == DtypeKind::kFloating; }

// The dtype that holds both, as torch.promote_types: the wider one of a kind, the higher kind of
// two; FLOAT for FLOAT16 with BF16, INT16 for INT8 with UINT8.
aclDataType Promote(aclDataType a, aclDataType b);

}  // namespace opserve::catalog
