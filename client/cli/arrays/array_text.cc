#include "client/cli/arrays/array_text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/dtypes/element.h"

namespace opserve::cli {
namespace {

constexpr int64_t kMaxElements = 1000;
constexpr int64_t kEdgeElements = 3;  // shown at each end of an axis that is cut
constexpr int kMaxDoubleDigits = 8;   // of a DOUBLE; more are no help to a reader
constexpr char kCut[] = "...";

// The shortest decimal of at most `max_digits` significant digits that is read as `value` again.
template <typename T>
std::string ShortestText(T value, int max_digits) {
  std::string text;
  for (int digits = 1; digits <= max_digits; ++digits) {
    text = absl::StrFormat("%.*g", digits, static_cast<double>(value));
    double read = 0;
    // In double, as the text is; T rounds it as the dtype does.
    if (!absl::SimpleAtod(text, &read) || T(read) != value) continue;
    // Few digits would have written 100000 as 1e+05.
    return absl::StrFormat("%.*g", std::max(max_digits, kMaxDoubleDigits), read);
  }
  return text;
}

// The type for computing with elements: their own, or double.
template <typename T>
using Wide = std::conditional_t<std::is_integral_v<T>, T, double>;

template <typename T>
ValueSummary SummarizeElements(const Result& result) {
  ValueSummary summary{.num_elements = result.num_elements()};
  Wide<T> minimum{};
  Wide<T> maximum{};
  double sum = 0;
  for (int64_t i = 0; i < summary.num_elements; ++i) {
    const auto value = static_cast<Wide<T>>(LoadElement<T>(result.bytes().data(), i));
    if constexpr (!std::is_integral_v<T>) {
      if (std::isnan(value)) ++summary.num_nan;
      if (!std::isfinite(value)) continue;
    }
    if (summary.num_finite == 0 || value < minimum) {
      minimum = value;
      summary.minimum_at = i;
    }
    if (summary.num_finite == 0 || value > maximum) {
      maximum = value;
      summary.maximum_at = i;
    }
    sum += static_cast<double>(value);
    ++summary.num_finite;
  }
  summary.minimum = static_cast<double>(minimum);
  summary.maximum = static_cast<double>(maximum);
  if (summary.num_finite > 0) summary.mean = sum / static_cast<double>(summary.num_finite);
  return summary;
}

// Writes the nested brackets of one result.
class ArrayWriter {
 public:
  ArrayWriter(const Result& result, size_t width)
      : result_(result), width_(width), is_cut_(result.num_elements() > kMaxElements) {}

  std::string Write() {
    // The first pass finds the widest value, the second writes all that wide.
    WriteAxis(/*axis=*/0, /*first=*/0, result_.num_elements());
    text_.clear();
    WriteAxis(/*axis=*/0, /*first=*/0, result_.num_elements());
    return std::move(text_);
  }

 private:
  // Writes the elements from `first` on, `count` of them, which are those of `axis` and all after
  // it.
  // Each element of an axis covers `step` elements of the tensor.
  void WriteAxis(size_t axis, int64_t first, int64_t count) {
    if (axis == result_.shape().size()) return WriteElement(axis, first);
    const int64_t extent = result_.shape()[axis];
    const int64_t step = count / extent;
    const bool is_cut = is_cut_ && extent > 2 * kEdgeElements;
    text_.push_back('[');
    for (int64_t i = 0; i < extent; ++i) {
      if (i > 0) Separate(axis);
      // The middle of a long axis is left out; `i` goes on with the last elements.
      if (is_cut && i == kEdgeElements) {
        text_.append(kCut);
        i = extent - kEdgeElements;
        Separate(axis);
      }
      WriteAxis(axis + 1, first + i * step, step);
    }
    text_.push_back(']');
  }

  void WriteElement(size_t axis, int64_t index) {
    const std::string value = FormatElement(result_, index);
    value_width_ = std::max(value_width_, value.size());
    const size_t line_start = text_.rfind('\n') + 1;  // npos + 1 is 0
    // A value that is alone in its line is not moved: the next line would be as narrow.
    if (text_.size() - line_start > axis && text_.size() - line_start + value_width_ > width_) {
      while (!text_.empty() && text_.back() == ' ') text_.pop_back();
      BreakLine(axis);
    }
    text_.append(value_width_ - value.size(), ' ');
    text_.append(value);
  }

  void Separate(size_t axis) {
    text_.push_back(',');
    if (axis + 1 == result_.shape().size()) {
      text_.push_back(' ');
    } else {
      BreakLine(axis + 1);
    }
  }

  void BreakLine(size_t indent) {
    text_.push_back('\n');
    text_.append(indent, ' ');
  }

  const Result& result_;
  const size_t width_;
  const bool is_cut_;
  size_t value_width_ = 0;
  std::string text_;
};

}  // namespace

bool IsInteger(DataType dtype) {
  return VisitElement(dtype,
                      []<typename T>(std::type_identity<T>) { return std::is_integral_v<T>; });
}

double ElementAt(const Result& result, int64_t index) {
  return VisitElement(result.dtype(), [&]<typename T>(std::type_identity<T>) {
    return static_cast<double>(LoadElement<T>(result.bytes().data(), index));
  });
}

int64_t IntegerAt(const Result& result, int64_t index) {
  return VisitElement(result.dtype(), [&]<typename T>(std::type_identity<T>) {
    return static_cast<int64_t>(LoadElement<T>(result.bytes().data(), index));
  });
}

ValueSummary Summarize(const Result& result) {
  return VisitElement(result.dtype(), [&]<typename T>(std::type_identity<T>) {
    return SummarizeElements<T>(result);
  });
}

std::string FormatValue(DataType dtype, double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return VisitElement(dtype, [value]<typename T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>) {
      return ShortestText(value, kMaxDoubleDigits);
    } else {
      return ShortestText(static_cast<T>(value), std::numeric_limits<T>::max_digits10);
    }
  });
}

std::string FormatElement(const Result& result, int64_t index) {
  if (result.dtype() == kBool) return IntegerAt(result, index) != 0 ? "true" : "false";
  if (IsInteger(result.dtype())) return absl::StrCat(IntegerAt(result, index));
  return FormatValue(result.dtype(), ElementAt(result, index));
}

nlohmann::ordered_json ElementToJson(const Result& result, int64_t index) {
  if (result.dtype() == kBool) return IntegerAt(result, index) != 0;
  if (IsInteger(result.dtype())) return IntegerAt(result, index);
  const double value = ElementAt(result, index);
  const std::string text = FormatValue(result.dtype(), value);
  if (!std::isfinite(value)) return text;
  // As a double, -0.05 of a FLOAT would be written -0.05000000074505806.
  double shortest = value;
  if (result.dtype() != kDouble) shortest = std::strtod(text.c_str(), nullptr);
  return shortest;
}

std::string FormatValues(const Result& result, size_t width) {
  if (result.num_elements() == 0) return "[]";
  return ArrayWriter(result, width).Write();
}

nlohmann::ordered_json ValuesToJson(const Result& result) {
  auto values = nlohmann::ordered_json::array();
  for (int64_t i = 0; i < std::min(result.num_elements(), kMaxElements); ++i) {
    values.push_back(ElementToJson(result, i));
  }
  return values;
}

}  // namespace opserve::cli
