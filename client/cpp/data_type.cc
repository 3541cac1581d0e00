#include "client/cpp/data_type.h"

#include <Eigen/Core>

#include "absl/strings/ascii.h"
#include "proto/dtypes/dtype.h"

namespace opserve {

absl::string_view DataTypeName(DataType dtype) {
  // A later daemon may send numbers that this client has no name for.
  const bool is_known = FindDtype(dtype) != nullptr || dtype == v1::DATA_TYPE_UNSPECIFIED;
  return is_known ? DtypeName(dtype) : "UNKNOWN";
}

std::optional<DataType> ParseDataType(absl::string_view name) {
  const DtypeFacts* const facts = FindDtypeBy(&DtypeFacts::name, absl::AsciiStrToUpper(name));
  if (facts == nullptr) return std::nullopt;
  return facts->dtype;
}

size_t DataTypeBytes(DataType dtype) { return static_cast<size_t>(DtypeBytes(dtype)); }

Float16 Float16::FromFloat(float value) {
  return {Eigen::numext::bit_cast<uint16_t>(Eigen::half(value))};
}

float Float16::ToFloat() const {
  return static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(bits));
}

Bf16 Bf16::FromFloat(float value) {
  return {Eigen::numext::bit_cast<uint16_t>(Eigen::bfloat16(value))};
}

float Bf16::ToFloat() const {
  return static_cast<float>(Eigen::numext::bit_cast<Eigen::bfloat16>(bits));
}

}  // namespace opserve
