// AscendC's vector instructions, as far as our kernel uses them, on the first `count` elements.
// Signatures, units and limits are those of the API reference for Atlas A2; a call outside of them
// ends the run with a Violation.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>

#include "core.h"
#include "half.h"
#include "tensor.h"

namespace AscendC {

namespace emulated {

// Operands lie in the same place or apart; halfway is refused (general constraints of the
// reference).
template <typename T, typename U>
void CheckOverlap(const Instruction& vector, const LocalTensor<T>& dst, size_t dst_bytes,
                  const LocalTensor<U>& src, size_t src_bytes) {
  if (dst.buffer() != src.buffer()) return;
  const bool is_same = dst.offset() == src.offset() && dst_bytes == src_bytes;
  const bool is_apart =
      dst.offset() + dst_bytes <= src.offset() || src.offset() + src_bytes <= dst.offset();
  if (!is_same && !is_apart) vector.Fail("destination and source overlap in part");
}

inline void CheckCount(const Instruction& vector, int32_t count) {
  if (count <= 0) vector.Fail("count is " + std::to_string(count));
}

template <typename T, typename U, typename F>
void Unary(const char* call, const LocalTensor<T>& dst, const LocalTensor<U>& src, int32_t count,
           F function) {
  Instruction vector(call, Unit::kVector);
  CheckCount(vector, count);
  CheckOverlap(vector, dst, count * sizeof(T), src, count * sizeof(U));
  const U* from =
      reinterpret_cast<const U*>(vector.Read(src.buffer(), src.offset(), count * sizeof(U)));
  T* to = reinterpret_cast<T*>(vector.Write(dst.buffer(), dst.offset(), count * sizeof(T)));
  for (int32_t i = 0; i < count; ++i) to[i] = function(from[i]);
}

template <typename F>
void Binary(const char* call, const LocalTensor<float>& dst, const LocalTensor<float>& src0,
            const LocalTensor<float>& src1, int32_t count, F function) {
  Instruction vector(call, Unit::kVector);
  CheckCount(vector, count);
  const size_t bytes = count * sizeof(float);
  CheckOverlap(vector, dst, bytes, src0, bytes);
  CheckOverlap(vector, dst, bytes, src1, bytes);
  const float* a = reinterpret_cast<const float*>(vector.Read(src0.buffer(), src0.offset(), bytes));
  const float* b = reinterpret_cast<const float*>(vector.Read(src1.buffer(), src1.offset(), bytes));
  float* to = reinterpret_cast<float*>(vector.Write(dst.buffer(), dst.offset(), bytes));
  for (int32_t i = 0; i < count; ++i) to[i] = function(a[i], b[i]);
}

// A count whose elements fill whole repeats of 256 bytes.
inline void CheckWholeRepeats(const Instruction& vector, uint32_t count) {
  if (count * sizeof(float) % 256 != 0) {
    vector.Fail("count " + std::to_string(count) + " does not fill a multiple of 256 bytes");
  }
}

}  // namespace emulated

using FloatTensor = LocalTensor<float>;

inline void Duplicate(const FloatTensor& dst, float value, int32_t count) {
  emulated::Instruction vector("Duplicate", emulated::Unit::kVector);
  emulated::CheckCount(vector, count);
  float* to =
      reinterpret_cast<float*>(vector.Write(dst.buffer(), dst.offset(), count * sizeof(float)));
  for (int32_t i = 0; i < count; ++i) to[i] = value;
}
inline void Adds(const FloatTensor& dst, const FloatTensor& src, float scalar, int32_t count) {
  emulated::Unary("Adds", dst, src, count, [=](float value) { return value + scalar; });
}
inline void Muls(const FloatTensor& dst, const FloatTensor& src, float scalar, int32_t count) {
  emulated::Unary("Muls", dst, src, count, [=](float value) { return value * scalar; });
}
inline void Exp(const FloatTensor& dst, const FloatTensor& src, int32_t count) {
  emulated::Unary("Exp", dst, src, count, [](float value) { return std::exp(value); });
}
inline void Ln(const FloatTensor& dst, const FloatTensor& src, int32_t count) {
  emulated::Unary("Ln", dst, src, count, [](float value) { return std::log(value); });
}
inline void Add(const FloatTensor& dst, const FloatTensor& src0, const FloatTensor& src1,
                int32_t count) {
  emulated::Binary("Add", dst, src0, src1, count, [](float a, float b) { return a + b; });
}
inline void Sub(const FloatTensor& dst, const FloatTensor& src0, const FloatTensor& src1,
                int32_t count) {
  emulated::Binary("Sub", dst, src0, src1, count, [](float a, float b) { return a - b; });
}
inline void Mul(const FloatTensor& dst, const FloatTensor& src0, const FloatTensor& src1,
                int32_t count) {
  emulated::Binary("Mul", dst, src0, src1, count, [](float a, float b) { return a * b; });
}

enum class RoundMode : uint8_t { CAST_NONE, CAST_RINT };

// float from half or bfloat16_t: CAST_NONE only, nothing is rounded.
template <typename T>
void Cast(const FloatTensor& dst, const LocalTensor<T>& src, RoundMode mode, uint32_t count) {
  if (mode != RoundMode::CAST_NONE)
    emulated::Core::Current().Fail("Cast: widening has CAST_NONE only");
  emulated::Unary("Cast", dst, src, count,
                  [](T value) { return opserve::ascendc::emulation::Widen(value); });
}
// half or bfloat16_t from float. CAST_NONE exists for half alone and means CAST_RINT: not used, so
// refused for both. Beyond the type: infinities, which is the device's default (its other mode
// saturates).
template <typename T>
void Cast(const LocalTensor<T>& dst, const FloatTensor& src, RoundMode mode, uint32_t count) {
  if (mode != RoundMode::CAST_RINT)
    emulated::Core::Current().Fail("Cast: narrowing is emulated with CAST_RINT only");
  emulated::Unary("Cast", dst, src, count, [](float value) {
    T result;
    opserve::ascendc::emulation::Narrow(value, &result);
    return result;
  });
}

enum class CMPMODE : uint8_t { NE };
enum class SELMODE : uint8_t { VSEL_TENSOR_SCALAR_MODE };

// Bit i % 8 of byte i / 8, from the lowest, says whether element i compares so. NE holds for NaN,
// as in IEEE 754.
inline void CompareScalar(const LocalTensor<uint8_t>& dst, const FloatTensor& src, float scalar,
                          CMPMODE, uint32_t count) {
  emulated::Instruction vector("CompareScalar", emulated::Unit::kVector);
  emulated::CheckCount(vector, static_cast<int32_t>(count));
  emulated::CheckWholeRepeats(vector, count);
  const float* from = reinterpret_cast<const float*>(
      vector.Read(src.buffer(), src.offset(), count * sizeof(float)));
  uint8_t* to = vector.Write(dst.buffer(), dst.offset(), count / 8);
  std::memset(to, 0, count / 8);
  for (uint32_t i = 0; i < count; ++i) {
    if (from[i] != scalar) to[i / 8] |= static_cast<uint8_t>(1 << i % 8);
  }
}

// src where the mask's bit is 1, otherwise the scalar. Uses 8 KiB of local memory that no buffer
// may have.
inline void Select(const FloatTensor& dst, const LocalTensor<uint8_t>& mask, const FloatTensor& src,
                   float scalar, SELMODE, uint32_t count) {
  emulated::Instruction vector("Select", emulated::Unit::kVector);
  const emulated::Core& core = emulated::Core::Current();
  if (core.used_bytes() + opserve::ascendc::emulation::kSelectReserveBytes >
      core.unified_buffer_bytes()) {
    vector.Fail("buffers of " + std::to_string(core.used_bytes()) +
                " bytes leave less than the 8 KiB it uses itself");
  }
  emulated::CheckCount(vector, static_cast<int32_t>(count));
  emulated::CheckOverlap(vector, dst, count * sizeof(float), src, count * sizeof(float));
  const uint8_t* bits = vector.Read(mask.buffer(), mask.offset(), (count + 7) / 8);
  const float* from = reinterpret_cast<const float*>(
      vector.Read(src.buffer(), src.offset(), count * sizeof(float)));
  float* to =
      reinterpret_cast<float*>(vector.Write(dst.buffer(), dst.offset(), count * sizeof(float)));
  for (uint32_t i = 0; i < count; ++i) to[i] = bits[i / 8] >> i % 8 & 1 ? from[i] : scalar;
}

// dst[r * dst_stride] = sum of the first `mask` floats of repeat r, neighbours first (a binary
// tree). Source strides in units of 32 bytes: between the blocks of a repeat, and between repeats.
inline void WholeReduceSum(const FloatTensor& dst, const FloatTensor& src, int32_t mask,
                           int32_t repeats, int32_t dst_stride, int32_t block_stride,
                           int32_t repeat_stride) {
  emulated::Instruction vector("WholeReduceSum", emulated::Unit::kVector);
  if (mask < 1 || mask > 64) vector.Fail("mask " + std::to_string(mask) + " is not in 1 to 64");
  if (repeats < 1 || repeats > 255)
    vector.Fail("repeatTime " + std::to_string(repeats) + " is not in 1 to 255");
  if (dst_stride != 1 || block_stride != 1) vector.Fail("strides other than 1 are not emulated");
  const size_t step = static_cast<size_t>(repeat_stride) * 8;
  const float* from = reinterpret_cast<const float*>(
      vector.Read(src.buffer(), src.offset(), ((repeats - 1) * step + mask) * sizeof(float)));
  float* to = reinterpret_cast<float*>(vector.Write(
      dst.buffer(), dst.offset(), repeats * sizeof(float), /*alignment=*/sizeof(float)));
  for (int32_t repeat = 0; repeat < repeats; ++repeat) {
    float lanes[64] = {};
    std::memcpy(lanes, from + repeat * step, mask * sizeof(float));
    for (int width = 32; width > 0; width /= 2) {
      for (int i = 0; i < width; ++i) lanes[i] = lanes[2 * i] + lanes[2 * i + 1];
    }
    to[repeat] = lanes[0];
  }
}

}  // namespace AscendC
