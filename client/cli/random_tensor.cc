#include "client/cli/random_tensor.h"

#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace opserve::cli {
namespace {

constexpr size_t kMaxAxes = 8;

template <typename T>
T FromDouble(double value) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    return T::FromFloat(static_cast<float>(value));
  }
}

template <typename T>
Tensor RandomTensorOf(const std::vector<int64_t>& shape, std::mt19937_64& random) {
  size_t elements = 1;
  for (const int64_t extent : shape) elements *= static_cast<size_t>(extent);
  std::uniform_real_distribution<double> values(0.25, 1);
  std::vector<T> data(elements);
  for (T& element : data) element = FromDouble<T>(values(random));
  return Tensor::Owning<T>(shape, std::move(data));
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

Tensor RandomTensor(DataType dtype, const std::vector<int64_t>& shape, std::mt19937_64& random) {
  switch (dtype) {
    case kFloat16:
      return RandomTensorOf<Float16>(shape, random);
    case kBf16:
      return RandomTensorOf<Bf16>(shape, random);
    case kDouble:
      return RandomTensorOf<double>(shape, random);
    default:
      return RandomTensorOf<float>(shape, random);
  }
}

}  // namespace opserve::cli
