#include "tests/conformance/compare.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"

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

// Values of at least this magnitude round to infinity.
double OverflowThreshold(const std::string& dtype) {
  if (dtype == "FLOAT16") return 65520.0;
  if (dtype == "FLOAT") return 3.4028235677973366e38;
  if (dtype == "BF16") return 3.39617752923046e38;
  return std::numeric_limits<double>::infinity();
}

double WidenFloat16(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  double magnitude = 0;
  if (exponent == 0x1f) {
    magnitude = fraction == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, -24);
  } else {
    magnitude = std::ldexp(fraction + 1024, exponent - 25);
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

double WidenBfloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

template <typename Element, typename ToDouble>
std::vector<double> WidenAs(std::string_view bytes, ToDouble to_double) {
  std::vector<double> values;
  for (size_t at = 0; at + sizeof(Element) <= bytes.size(); at += sizeof(Element)) {
    Element element;
    std::memcpy(&element, bytes.data() + at, sizeof(element));
    values.push_back(to_double(element));
  }
  return values;
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
  const auto as_is = [](auto value) -> double { return value; };
  if (dtype == "FLOAT16") return WidenAs<uint16_t>(bytes, WidenFloat16);
  if (dtype == "BF16") return WidenAs<uint16_t>(bytes, WidenBfloat16);
  if (dtype == "FLOAT") return WidenAs<float>(bytes, as_is);
  return WidenAs<double>(bytes, as_is);
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
