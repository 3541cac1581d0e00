// What the make functions read from a call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/cpu/kernel.h"

namespace opserve::kernels {

inline int64_t NumElements(const Layout& layout) {
  int64_t count = 1;
  for (int d = 0; d < layout.rank; ++d) count *= layout.shape[d];
  return count;
}

// The tensor of an argument that is not a list. Requires that it is given.
inline const Layout& Input(const Call& call, size_t argument) {
  return call.inputs[argument].front();
}
inline const Layout& Output(const Call& call, size_t argument) {
  return call.outputs[argument].front();
}

// Whether an optional argument is given.
inline bool HasInput(const Call& call, size_t argument) {
  return argument < call.inputs.size() && !call.inputs[argument].empty();
}
inline bool HasOutput(const Call& call, size_t argument) {
  return argument < call.outputs.size() && !call.outputs[argument].empty();
}
inline bool HasAttribute(const Call& call, size_t attribute) {
  return attribute < call.attributes.size() &&
         !std::holds_alternative<std::monostate>(call.attributes[attribute]);
}

// A number given as an integer, a bool, a floating value or an aclScalar; `absent` where it is
// left out.
inline double RealAttribute(const Call& call, size_t attribute, double absent = 0) {
  if (attribute >= call.attributes.size()) return absent;
  const Attribute& value = call.attributes[attribute];
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* scalar = std::get_if<Scalar>(&value)) return scalar->real;
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? 1 : 0;
  return absent;
}
inline int64_t IntAttribute(const Call& call, size_t attribute, int64_t absent = 0) {
  if (attribute >= call.attributes.size()) return absent;
  const Attribute& value = call.attributes[attribute];
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
  if (const auto* scalar = std::get_if<Scalar>(&value)) return scalar->integer;
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? 1 : 0;
  return absent;
}
inline bool BoolAttribute(const Call& call, size_t attribute, bool absent = false) {
  return IntAttribute(call, attribute, absent ? 1 : 0) != 0;
}
inline std::string_view TextAttribute(const Call& call, size_t attribute) {
  if (attribute >= call.attributes.size()) return {};
  const auto* text = std::get_if<std::string>(&call.attributes[attribute]);
  return text == nullptr ? std::string_view{} : std::string_view{*text};
}
// Empty where it is left out.
inline std::vector<int64_t> IntsAttribute(const Call& call, size_t attribute) {
  if (attribute >= call.attributes.size()) return {};
  const auto* values = std::get_if<std::vector<int64_t>>(&call.attributes[attribute]);
  return values == nullptr ? std::vector<int64_t>{} : *values;
}

// An axis given from the first or, negative, from the last one; a tensor without axes has one.
inline int AxisAttribute(int64_t axis, int rank) {
  return static_cast<int>(axis < 0 ? axis + std::max(rank, 1) : axis);
}

// Elements of the shape that the layouts broadcast to.
inline int64_t NumBroadcastElements(const Layout& a, const Layout& b) {
  const int rank = std::max(a.rank, b.rank);
  int64_t count = 1;
  for (int d = 0; d < rank; ++d) {
    const int64_t x = d < rank - a.rank ? 1 : a.shape[d - (rank - a.rank)];
    const int64_t y = d < rank - b.rank ? 1 : b.shape[d - (rank - b.rank)];
    count *= x == 1 ? y : x;
  }
  return count;
}

// The `reduction` of the losses.
inline constexpr int64_t kReduceNone = 0;
inline constexpr int64_t kReduceMean = 1;
inline constexpr int64_t kReduceSum = 2;
inline constexpr int64_t kReduceBatchMean = 3;

// What a loss of self and target divides its sum by, at least 1: the elements of the broadcast
// shape for the mean, its first extent for the mean of a batch.
inline double ReductionDivisor(int64_t reduction, const Layout& self, const Layout& target) {
  int64_t divisor = 1;
  if (reduction == kReduceMean) divisor = NumBroadcastElements(self, target);
  if (reduction == kReduceBatchMean && std::max(self.rank, target.rank) > 0) {
    const int64_t x = self.rank < target.rank ? 1 : self.shape[0];
    const int64_t y = target.rank < self.rank ? 1 : target.shape[0];
    divisor = x == 1 ? y : x;
  }
  return static_cast<double>(std::max<int64_t>(divisor, 1));
}

}  // namespace opserve::kernels
