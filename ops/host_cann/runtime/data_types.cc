// Element sizes, and single numbers between binary32 and binary16.
#include <Eigen/Core>
#include <cmath>
#include <cstdint>

#include "acl/acl_base.h"
#include "ops/host_cann/runtime/launch.h"

using opserve::host_cann::EnterCall;

size_t aclDataTypeSize(aclDataType dataType) {
  if (EnterCall("aclDataTypeSize") != ACL_SUCCESS) return 0;
  switch (dataType) {
    case ACL_DT_UNDEFINED:
    case ACL_STRING:
      return 0;
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL:
    // Types of less than a byte count a whole one.
    case ACL_INT4:
    case ACL_UINT1:
    case ACL_HIFLOAT8:
    case ACL_FLOAT8_E5M2:
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT8_E8M0:
      return 1;
    case ACL_FLOAT16:
    case ACL_INT16:
    case ACL_UINT16:
    case ACL_BF16:
      return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
    case ACL_COMPLEX32:
      return 4;
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_DOUBLE:
    case ACL_COMPLEX64:
    // The vendor's function returns 8 for these, though they are smaller.
    case ACL_FLOAT6_E3M2:
    case ACL_FLOAT6_E2M3:
    case ACL_FLOAT4_E2M1:
    case ACL_FLOAT4_E1M2:
      return 8;
    case ACL_COMPLEX128:
      return 16;
  }
  return 0;
}

float aclFloat16ToFloat(aclFloat16 value) {
  if (EnterCall("aclFloat16ToFloat") != ACL_SUCCESS) return 0;
  // The largest exponent is read like any other: that is how this function always was.
  constexpr uint16_t kExponent = 0x7C00;
  constexpr uint16_t kExponentStep = 0x0400;
  const bool has_largest = (value & kExponent) == kExponent;
  const auto bits = static_cast<uint16_t>(has_largest ? value - kExponentStep : value);
  const auto halved_if_largest = static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(bits));
  return has_largest ? 2 * halved_if_largest : halved_if_largest;
}

aclFloat16 aclFloatToFloat16(float value) {
  if (EnterCall("aclFloatToFloat16") != ACL_SUCCESS) return 0;
  constexpr uint16_t kLargest = 0x7BFF;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  // 65520 and above would round to infinity.
  if (!(std::fabs(value) < 65520.0f)) return sign | kLargest;  // NaN too
  return Eigen::numext::bit_cast<uint16_t>(Eigen::half(value));
}
