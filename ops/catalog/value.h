// The parts of calls, as rules see them: dtypes by their ACL numbers, shapes, values of attributes.
// Nothing here knows protobuf, as the host CANN's stage one reads it too.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "acl/acl_base.h"

namespace opserve::catalog {

using Shape = absl::InlinedVector<int64_t, 8>;

// Dtype and shape of a tensor.
struct Spec {
  aclDataType dtype = ACL_DT_UNDEFINED;
  Shape shape;

  friend bool operator==(const Spec& a, const Spec& b) = default;
};

// A number with a dtype, as aclScalar.
struct Scalar {
  aclDataType dtype = ACL_FLOAT;
  std::variant<int64_t, double> value;  // an integer where the dtype is one, or BOOL

  double AsDouble() const {
    const int64_t* integer = std::get_if<int64_t>(&value);
    return integer != nullptr ? static_cast<double>(*integer) : std::get<double>(value);
  }

  friend bool operator==(const Scalar& a, const Scalar& b) = default;
};

// The value of an attribute; std::monostate where an optional one is left out.
using AttributeValue =
    std::variant<std::monostate, int64_t, bool, double, std::string, aclDataType, Scalar,
                 std::vector<int64_t>, std::vector<bool>, std::vector<double>>;

// The alternatives of AttributeValue behind std::monostate, in their order.
enum class AttributeType {
  kInt64 = 1,
  kBool,
  kDouble,
  kText,
  kDtype,
  kScalar,
  kInt64s,
  kBools,
  kDoubles
};

}  // namespace opserve::catalog
