#include "client/cli/arrays/random_tensor.h"

#include <cstddef>
#include <limits>
#include <memory>
#include <type_traits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "proto/dtypes/element.h"

namespace opserve::cli {
namespace {

constexpr size_t kMaxAxes = 8;

// A tensor of elements of type T, each from a call of `next`.
template <typename T, typename Next>
Tensor Fill(DataType dtype, const std::vector<int64_t>& shape, const Next& next) {
  size_t elements = 1;
  for (const int64_t extent : shape) elements *= static_cast<size_t>(extent);
  // Shared, as the tensor keeps its elements alive.
  const auto data = std::make_shared<T[]>(elements);
  for (size_t i = 0; i < elements; ++i) {
    const auto value = next();
    if constexpr (std::is_arithmetic_v<T>) {
      data[i] = static_cast<T>(value);
    } else {  // a half type, of which there is none of integers
      data[i] = static_cast<T>(static_cast<double>(value));
    }
  }
  const absl::Span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data.get()),
                                          elements * sizeof(T));
  return Tensor::FromBytes(dtype, shape, bytes, data);
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> ParseShape(absl::string_view text) {
  std::vector<int64_t> shape;
  if (absl::AsciiStrToLower(text) == "scalar") return shape;
  const absl::Status error = absl::InvalidArgumentError(absl::StrCat(
      "expected up to ", kMaxAxes, " extents, each at least 1, such as 256,1024, or scalar"));
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t extent = 0;
    if (!absl::SimpleAtoi(part, &extent) || extent < 1) return error;
    shape.push_back(extent);
  }
  if (shape.size() > kMaxAxes) return error;
  return shape;
}

absl::StatusOr<IntegerRange> ParseIntegerRange(absl::string_view text) {
  IntegerRange range;
  const absl::Status error =
      absl::InvalidArgumentError("expected (LOW,HIGH), integers from LOW on, below HIGH");
  if (!absl::ConsumePrefix(&text, "(") || !absl::ConsumeSuffix(&text, ")")) return error;
  const std::vector<absl::string_view> bounds = absl::StrSplit(text, ',');
  if (bounds.size() != 2 || !absl::SimpleAtoi(bounds[0], &range.low) ||
      !absl::SimpleAtoi(bounds[1], &range.high) || range.low >= range.high) {
    return error;
  }
  return range;
}

bool Holds(DataType dtype, const IntegerRange& range) {
  return VisitElement(dtype, [&]<typename T>(std::type_identity<T>) {
    using Limits = std::numeric_limits<T>;
    // The last number of the range; `high` itself is outside.
    const int64_t last = range.high - 1;
    if constexpr (std::is_integral_v<T>) {
      return range.low >= static_cast<int64_t>(Limits::lowest()) &&
             last <= static_cast<int64_t>(Limits::max());
    } else {
      return static_cast<double>(range.low) >= static_cast<double>(Limits::lowest()) &&
             static_cast<double>(last) <= static_cast<double>(Limits::max());
    }
  });
}

Tensor RandomTensor(DataType dtype, const std::vector<int64_t>& shape, std::mt19937_64& random) {
  return VisitElement(dtype, [&]<typename T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T>) {
      return RandomIntegers(dtype, shape, {.low = 0, .high = 2}, random);
    } else {
      std::uniform_real_distribution<double> values(0.25, 1);
      return Fill<T>(dtype, shape, [&] { return values(random); });
    }
  });
}

Tensor RandomIntegers(DataType dtype, const std::vector<int64_t>& shape, const IntegerRange& range,
                      std::mt19937_64& random) {
  std::uniform_int_distribution<int64_t> values(range.low, range.high - 1);
  return VisitElement(dtype, [&]<typename T>(std::type_identity<T>) {
    return Fill<T>(dtype, shape, [&] { return values(random); });
  });
}

}  // namespace opserve::cli
