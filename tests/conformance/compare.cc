#include "tests/conformance/compare.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "proto/dtypes/element.h"

namespace opserve::conformance {
namespace {

// Calls visit(storage index) for every element of the view, in row-major order.
template <typename Visit>
void ForEachElement(const Tensor& tensor, Visit visit) {
  const int64_t count = tensor.num_elements();
  std::vector<int64_t> index(tensor.shape.size(), 0);
  for (int64_t n = 0; n < count; ++n) {
    int64_t position = tensor.offset;
    for (size_t axis = 0; axis < index.size(); ++axis) {
      position += index[axis] * tensor.strides[axis];
    }
    visit(position);
    for (size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < tensor.shape[axis]) break;
      index[axis] = 0;
    }
  }
}

// Calls visit(std::type_identity<T>()), T being the type of elements of the dtype of that name.
template <typename Visitor>
auto VisitNamed(const std::string& dtype, const Visitor& visit) {
  return VisitElement(FindDtypeBy(&DtypeFacts::name, dtype)->dtype, visit);
}

// Values of at least this magnitude, half a step above the largest, round to infinity.
double OverflowThreshold(const std::string& dtype) {
  return VisitNamed(dtype, []<typename T>(std::type_identity<T>) {
    using Limits = std::numeric_limits<T>;
    return static_cast<double>(Limits::max()) +
           std::ldexp(1.0, Limits::max_exponent - 1 - Limits::digits);
  });
}

bool IsAcceptable(double expected, double got, double threshold, const Case& value_case) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
  if (std::abs(expected) >= threshold) {
    return std::isinf(got) && std::signbit(got) == std::signbit(expected);
  }
  return std::isfinite(got) &&
         std::abs(got - expected) <= value_case.atol + value_case.rtol * std::abs(expected);
}

}  // namespace

std::string GatherView(const Tensor& tensor, std::string_view storage) {
  const int64_t element_bytes = ElementBytes(tensor.dtype);
  std::string elements;
  ForEachElement(tensor, [&](int64_t position) {
    elements.append(storage.substr(position * element_bytes, element_bytes));
  });
  return elements;
}

std::vector<double> Widen(const std::string& dtype, std::string_view bytes) {
  return VisitNamed(dtype, [&]<typename T>(std::type_identity<T>) {
    std::vector<double> values(bytes.size() / sizeof(T));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<double>(LoadElement<T>(bytes.data(), static_cast<int64_t>(i)));
    }
    return values;
  });
}

std::string CompareElements(const Case& value_case, std::string_view elements) {
  const std::string& dtype = value_case.output->dtype;
  const std::vector<double> got = Widen(dtype, elements);
  if (got.size() != value_case.expected.size()) {
    return absl::StrCat(got.size(), " elements instead of ", value_case.expected.size());
  }
  const double threshold = OverflowThreshold(dtype);
  for (size_t i = 0; i < got.size(); ++i) {
    if (!IsAcceptable(value_case.expected[i], got[i], threshold, value_case)) {
      return absl::StrCat("element ", i, ": ", got[i], " instead of ", value_case.expected[i]);
    }
  }
  return "";
}

std::string CompareStorage(const Case& value_case, std::string_view storage) {
  const Tensor& output = *value_case.output;
  const int64_t element_bytes = ElementBytes(output.dtype);
  std::string rest(storage);
  ForEachElement(output, [&](int64_t position) {
    rest.replace(position * element_bytes, element_bytes, element_bytes, kGuardByte);
  });
  const size_t written = rest.find_first_not_of(kGuardByte);
  if (written != std::string::npos) {
    return absl::StrCat("byte ", written, " of the storage was written, but is not of the view");
  }
  return CompareElements(value_case, GatherView(output, storage));
}

}  // namespace opserve::conformance
