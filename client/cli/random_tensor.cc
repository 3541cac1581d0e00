#include "client/cli/random_tensor.h"

#include <cstddef>
#include <memory>
#include <type_traits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "proto/dtypes/element.h"

namespace opserve::cli {
namespace {

constexpr size_t kMaxAxes = 8;

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
  size_t elements = 1;
  for (const int64_t extent : shape) elements *= static_cast<size_t>(extent);
  std::uniform_real_distribution<double> values(0.25, 1);
  return VisitElement(dtype, [&]<typename T>(std::type_identity<T>) {
    const auto data = std::make_shared<T[]>(elements);
    for (size_t i = 0; i < elements; ++i) data[i] = static_cast<T>(values(random));
    const absl::Span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data.get()),
                                            elements * sizeof(T));
    return Tensor::FromBytes(dtype, shape, bytes, data);
  });
}

}  // namespace opserve::cli
