#include "client/cpp/data_type.h"

#include <bit>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace opserve {
namespace {

constexpr absl::string_view kPrefix = "DATA_TYPE_";
constexpr uint32_t kFloatInfinity = 0x7f800000;
constexpr uint16_t kHalfInfinity = 0x7c00;

}  // namespace

absl::string_view DataTypeName(DataType dtype) {
  // Names live in the descriptor, which is never destroyed.
  const auto* value = v1::DataType_descriptor()->FindValueByNumber(dtype);
  if (value == nullptr) return "UNKNOWN";
  return absl::StripPrefix(value->name(), kPrefix);
}

std::optional<DataType> ParseDataType(absl::string_view name) {
  DataType dtype = v1::DATA_TYPE_UNSPECIFIED;
  if (!v1::DataType_Parse(absl::StrCat(kPrefix, absl::AsciiStrToUpper(name)), &dtype) ||
      dtype == v1::DATA_TYPE_UNSPECIFIED) {
    return std::nullopt;
  }
  return dtype;
}

size_t DataTypeBytes(DataType dtype) {
  switch (dtype) {
    case v1::DATA_TYPE_FLOAT16:
    case v1::DATA_TYPE_BF16:
      return 2;
    case v1::DATA_TYPE_FLOAT:
      return 4;
    case v1::DATA_TYPE_DOUBLE:
      return 8;
    default:
      return 0;
  }
}

Float16 Float16::FromFloat(float value) {
  const uint32_t whole = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((whole >> 16) & 0x8000);
  uint32_t magnitude = whole & 0x7fffffff;
  constexpr uint32_t kRoundsToInfinity = 0x477ff000;  // 65520: half way past the largest, 65504
  constexpr uint32_t kSmallestNormal = 0x38800000;    // 2^-14

  uint32_t half = 0;
  if (magnitude > kFloatInfinity) {
    half = kHalfInfinity | 0x200;
  } else if (magnitude >= kRoundsToInfinity) {
    half = kHalfInfinity;
  } else if (magnitude < kSmallestNormal) {
    // A float in [0.5, 1) has steps of 2^-24, the steps of subnormal halves: the addition rounds.
    half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
           std::bit_cast<uint32_t>(0.5f);
  } else {
    const uint32_t is_odd = (magnitude >> 13) & 1;
    half = (magnitude + 0xfff + is_odd - (uint32_t{127 - 15} << 23)) >> 13;
  }
  return {static_cast<uint16_t>(sign | half)};
}

float Float16::ToFloat() const {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= kHalfInfinity) {
    return std::bit_cast<float>(sign | kFloatInfinity | (magnitude & 0x3ff) << 13);
  }
  // Read as a float with the exponent's bias of a half, then corrected by the difference of biases.
  return std::bit_cast<float>(sign | magnitude << 13) * 0x1p112f;
}

Bf16 Bf16::FromFloat(float value) {
  const uint32_t whole = std::bit_cast<uint32_t>(value);
  if ((whole & 0x7fffffff) > kFloatInfinity) return {static_cast<uint16_t>(whole >> 16 | 0x40)};
  return {static_cast<uint16_t>((whole + 0x7fff + ((whole >> 16) & 1)) >> 16)};
}

float Bf16::ToFloat() const { return std::bit_cast<float>(uint32_t{bits} << 16); }

}  // namespace opserve
