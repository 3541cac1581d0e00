// AscendC::DataCopyPad, between global and local memory.
// Signatures, units and limits are those of the API reference for Atlas A2; a call outside of them
// ends the run with a Violation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "core.h"
#include "tensor.h"

namespace AscendC {

// Strides are from the end of a block to the start of the next one: bytes in global memory, units
// of 32 bytes in local memory.
struct DataCopyExtParams {
  uint16_t blockCount = 0;  // 1 to 4095
  uint32_t blockLen = 0;    // bytes, 1 to 2097151
  uint32_t srcStride = 0;
  uint32_t dstStride = 0;
  uint32_t rsv = 0;
};

template <typename T>
struct DataCopyPadExtParams {
  bool isPad = false;
  uint8_t leftPadding = 0;
  uint8_t rightPadding = 0;
  T paddingValue{};
};

namespace emulated {

inline size_t BytesInLocalMemory(const DataCopyExtParams& shape, size_t stride) {
  const size_t block = (shape.blockLen + kLocalAlignment - 1) / kLocalAlignment * kLocalAlignment;
  return (shape.blockCount - 1) * (block + stride * kLocalAlignment) + block;
}

inline void CheckShape(const Instruction& copy, const DataCopyExtParams& shape, size_t element) {
  if (shape.blockCount < 1 || shape.blockCount > 4095) {
    copy.Fail("blockCount " + std::to_string(shape.blockCount) + " is not in 1 to 4095");
  }
  if (shape.blockLen < 1 || shape.blockLen > 2097151 || shape.blockLen % element != 0) {
    copy.Fail("blockLen " + std::to_string(shape.blockLen) +
              " is not a number of elements in 1 to 2097151 bytes");
  }
}

template <typename T>
void CheckGlobal(const Instruction& copy, const GlobalTensor<T>& tensor,
                 const DataCopyExtParams& shape, size_t stride, bool writes) {
  const size_t bytes = (shape.blockCount - 1) * (shape.blockLen + stride) + shape.blockLen;
  if (bytes > tensor.GetSize() * sizeof(T)) {
    copy.Fail(std::to_string(bytes) + " bytes of a global tensor of " +
              std::to_string(tensor.GetSize() * sizeof(T)));
  }
  Core::Current().CheckGlobal("DataCopyPad", tensor.GetPhyAddr(), bytes, writes);
}

}  // namespace emulated

// In local memory each block takes whole units of 32 bytes. What its last element leaves of the
// last one stays as it was, NaNs, though the device puts something there.
template <typename T>
void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src,
                 const DataCopyExtParams& shape, const DataCopyPadExtParams<T>& padding) {
  emulated::Instruction copy("DataCopyPad", emulated::Unit::kCopyIn);
  emulated::CheckShape(copy, shape, sizeof(T));
  if (dst.position() != TPosition::VECIN) copy.Fail("the destination of a copy in is not VECIN");
  if (padding.isPad) copy.Fail("padding is not emulated");
  emulated::CheckGlobal(copy, src, shape, shape.srcStride, /*writes=*/false);
  uint8_t* to =
      copy.Write(dst.buffer(), dst.offset(), emulated::BytesInLocalMemory(shape, shape.dstStride));
  const uint8_t* from = reinterpret_cast<const uint8_t*>(src.GetPhyAddr());
  const size_t step = (shape.blockLen + 31) / 32 * 32 + size_t{shape.dstStride} * 32;
  for (int block = 0; block < shape.blockCount; ++block) {
    std::memcpy(to + block * step, from + block * (size_t{shape.blockLen} + shape.srcStride),
                shape.blockLen);
  }
}

template <typename T>
void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src,
                 const DataCopyExtParams& shape) {
  emulated::Instruction copy("DataCopyPad", emulated::Unit::kCopyOut);
  emulated::CheckShape(copy, shape, sizeof(T));
  if (src.position() != TPosition::VECOUT) copy.Fail("the source of a copy out is not VECOUT");
  emulated::CheckGlobal(copy, dst, shape, shape.dstStride, /*writes=*/true);
  const uint8_t* from =
      copy.Read(src.buffer(), src.offset(), emulated::BytesInLocalMemory(shape, shape.srcStride));
  uint8_t* to = reinterpret_cast<uint8_t*>(dst.GetPhyAddr());
  const size_t step = (shape.blockLen + 31) / 32 * 32 + size_t{shape.srcStride} * 32;
  for (int block = 0; block < shape.blockCount; ++block) {
    std::memcpy(to + block * (size_t{shape.blockLen} + shape.dstStride), from + block * step,
                shape.blockLen);
  }
}

}  // namespace AscendC
