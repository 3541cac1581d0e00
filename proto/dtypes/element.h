// The C++ types of elements, and the one dispatch from a dtype to them. FLOAT16 and BF16 are
// Eigen::half and Eigen::bfloat16, which convert from float (to nearest, ties to even; too large
// becomes infinite) and to float.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "proto/dtypes/dtype.h"

namespace opserve {

// Calls visit(std::type_identity<T>()), T being the C++ type of the elements, and returns its
// result. Requires: a dtype of the table.
template <typename Visitor>
decltype(auto) VisitElement(Dtype dtype, const Visitor& visit) {
  switch (dtype) {
#define OPSERVE_DTYPE(name, bytes, element, ...)                    \
  case v1::DATA_TYPE_##name:                                        \
    static_assert(sizeof(element) == bytes, "bytes of an element"); \
    return visit(std::type_identity<element>());
#include "proto/dtypes/table.inc"
    default:
      std::abort();  // callers have refused numbers that are no dtype
  }
}

// Element `index` of an array of them, which may lie at any address. A bool is true if its byte is
// not 0.
template <typename T>
T LoadElement(const void* elements, int64_t index) {
  if constexpr (std::is_same_v<T, bool>) return static_cast<const char*>(elements)[index] != 0;
  T value;
  std::memcpy(&value, static_cast<const char*>(elements) + index * sizeof(T), sizeof(T));
  return value;
}

}  // namespace opserve
