// Names and casts of element types, for stage one.
#pragma once

#include <string>

#include "acl/acl_base.h"

namespace opserve::host_cann {

// "FLOAT16"; "dtype 77" for types that no operator here meets as anything but an error.
std::string DtypeName(aclDataType dtype);

// Whether a result of type `from` may be stored as type `to`: towards more general kinds in the
// order boolean, integer, floating, complex, and within a kind.
bool CanCast(aclDataType from, aclDataType to);

}  // namespace opserve::host_cann
