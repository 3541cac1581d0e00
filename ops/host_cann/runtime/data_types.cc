// Element sizes, and single numbers between binary32 and binary16.
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
  const int exponent = (value >> 10) & 0x1F;
  const int fraction = value & 0x3FF;
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(fraction), -24)
                              : std::ldexp(static_cast<float>(fraction | 0x400), exponent - 25);
  return (value & 0x8000) != 0 ? -magnitude : magnitude;
}

aclFloat16 aclFloatToFloat16(float value) {
  if (EnterCall("aclFloatToFloat16") != ACL_SUCCESS) return 0;
  constexpr uint16_t kLargest = 0x7BFF;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const float magnitude = std::fabs(value);
  if (!(magnitude < 65520.0f)) return sign | kLargest;  // NaN too
  // In units of the last place, which are 2^-24 below 2^-14 and grow with the exponent above it.
  const int exponent = magnitude < std::ldexp(1.0f, -14) ? -14 : std::ilogb(magnitude);
  const int units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  // A fraction that rounds up to a power of two carries into the exponent by plain addition.
  const int biased = ((exponent + 14) << 10) + units;
  return static_cast<uint16_t>(sign | biased);
}
