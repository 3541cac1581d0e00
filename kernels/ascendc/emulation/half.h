// The device's 16-bit floating-point types, under the device's names, and how they become floats
// and back.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

struct half {
  uint16_t bits;
};

struct bfloat16_t {
  uint16_t bits;
};

namespace opserve::ascendc::emulation {

inline float Widen(half value) {
  const int exponent = value.bits >> 10 & 31;
  const int mantissa = value.bits & 1023;
  float magnitude;
  if (exponent == 31) {
    magnitude = mantissa == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(mantissa), -24);
  } else {
    magnitude = std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  }
  return value.bits & 0x8000 ? -magnitude : magnitude;
}

inline float Widen(bfloat16_t value) {
  const uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

// To nearest, ties to even; what lies beyond the type becomes an infinity.
inline void Narrow(float value, half* result) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const float magnitude = std::fabs(value);
  uint32_t bits;
  if (std::isnan(value)) {
    bits = 0x7E00;
  } else if (magnitude == 0.0f || magnitude >= 65520.0f) {
    bits = magnitude == 0.0f ? 0 : 0x7C00;
  } else {
    const int exponent = std::ilogb(magnitude) < -14 ? -14 : std::ilogb(magnitude);
    const double steps = std::nearbyint(std::ldexp(static_cast<double>(magnitude), 10 - exponent));
    bits = static_cast<uint32_t>((exponent + 15) * 1024 + static_cast<int>(steps) - 1024);
  }
  result->bits = static_cast<uint16_t>(sign | bits);
}

inline void Narrow(float value, bfloat16_t* result) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (std::isnan(value)) {
    result->bits = static_cast<uint16_t>(bits >> 16 | 0x40);
  } else {
    result->bits = static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
  }
}

}  // namespace opserve::ascendc::emulation
