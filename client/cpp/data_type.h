// Element types of tensors: the protocol's enum under short names, and C++ types for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "opserve/v1/tensor.pb.h"

namespace opserve {

using DataType = v1::DataType;

inline constexpr DataType kFloat = v1::DATA_TYPE_FLOAT;      // float
inline constexpr DataType kFloat16 = v1::DATA_TYPE_FLOAT16;  // Float16
inline constexpr DataType kBf16 = v1::DATA_TYPE_BF16;        // Bf16
inline constexpr DataType kDouble = v1::DATA_TYPE_DOUBLE;    // double
inline constexpr DataType kInt8 = v1::DATA_TYPE_INT8;        // int8_t
inline constexpr DataType kUint8 = v1::DATA_TYPE_UINT8;      // uint8_t
inline constexpr DataType kInt16 = v1::DATA_TYPE_INT16;      // int16_t
inline constexpr DataType kInt32 = v1::DATA_TYPE_INT32;      // int32_t
inline constexpr DataType kInt64 = v1::DATA_TYPE_INT64;      // int64_t
inline constexpr DataType kBool = v1::DATA_TYPE_BOOL;        // bool; false is 0, true is 1

// "FLOAT", "FLOAT16", "BF16", "DOUBLE", "INT64", "BOOL", ...; "UNSPECIFIED", and "UNKNOWN" for a
// number that this client does not know.
absl::string_view DataTypeName(DataType dtype);

// The reverse, in any case ("float16"); nothing if no element type has this name.
std::optional<DataType> ParseDataType(absl::string_view name);

// Bytes of one element; 0 for a type this client does not know.
size_t DataTypeBytes(DataType dtype);

// IEEE binary16, as bits.
struct Float16 {
  // Rounds to nearest, ties to even; values that are too large become infinite.
  static Float16 FromFloat(float value);
  float ToFloat() const;

  uint16_t bits = 0;
};

// The upper half of an IEEE binary32, as bits.
struct Bf16 {
  // Rounds to nearest, ties to even; values that are too large become infinite.
  static Bf16 FromFloat(float value);
  float ToFloat() const;

  uint16_t bits = 0;
};

// The element type that a C++ type holds.
template <typename T>
inline constexpr DataType kDataTypeOf = v1::DATA_TYPE_UNSPECIFIED;
template <>
inline constexpr DataType kDataTypeOf<float> = kFloat;
template <>
inline constexpr DataType kDataTypeOf<Float16> = kFloat16;
template <>
inline constexpr DataType kDataTypeOf<Bf16> = kBf16;
template <>
inline constexpr DataType kDataTypeOf<double> = kDouble;
template <>
inline constexpr DataType kDataTypeOf<int8_t> = kInt8;
template <>
inline constexpr DataType kDataTypeOf<uint8_t> = kUint8;
template <>
inline constexpr DataType kDataTypeOf<int16_t> = kInt16;
template <>
inline constexpr DataType kDataTypeOf<int32_t> = kInt32;
template <>
inline constexpr DataType kDataTypeOf<int64_t> = kInt64;
template <>
inline constexpr DataType kDataTypeOf<bool> = kBool;

template <typename T>
concept Element = kDataTypeOf<T>
!= v1::DATA_TYPE_UNSPECIFIED;

}  // namespace opserve
