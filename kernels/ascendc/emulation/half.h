// The device's 16-bit floating-point types, under the device's names, and how they become floats
// and back.
#pragma once

#include <Eigen/Core>
#include <cstdint>

struct half {
  uint16_t bits;
};

struct bfloat16_t {
  uint16_t bits;
};

namespace opserve::ascendc::emulation {

inline float Widen(half value) {
  return static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(value.bits));
}

inline float Widen(bfloat16_t value) {
  return static_cast<float>(Eigen::numext::bit_cast<Eigen::bfloat16>(value.bits));
}

// To nearest, ties to even; what lies beyond the type becomes an infinity.
inline void Narrow(float value, half* result) {
  result->bits = Eigen::numext::bit_cast<uint16_t>(Eigen::half(value));
}

inline void Narrow(float value, bfloat16_t* result) {
  result->bits = Eigen::numext::bit_cast<uint16_t>(Eigen::bfloat16(value));
}

}  // namespace opserve::ascendc::emulation
