#include "ops/catalog/description_values.h"

#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "ops/catalog/attribute_values.h"
#include "ops/catalog/dtypes.h"
#include "ops/catalog/rules.h"
#include "proto/status/status_macros.h"

namespace opserve::catalog {
namespace {

using Json = nlohmann::json;

// Highest rank of a tensor.
constexpr size_t kMaxRank = 8;
// Only empty tensors name extents without having elements for them.
constexpr uint64_t kMaxExtent = uint64_t{1} << 40;

absl::Status Wrong(absl::string_view at, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(at, ": ", problem));
}

// A scalar's text: "2" is INT64, "0.5" FLOAT, "true" BOOL; "DOUBLE 0.5" names its dtype.
absl::StatusOr<Scalar> ReadScalar(absl::string_view at, absl::string_view text) {
  Scalar scalar;
  aclDataType dtype = ACL_DT_UNDEFINED;
  if (const size_t blank = text.find(' '); blank != absl::string_view::npos) {
    dtype = DtypeOfName(text.substr(0, blank));
    if (dtype == ACL_DT_UNDEFINED) return Wrong(at, absl::StrCat("\"", text, "\" names no dtype"));
    text = text.substr(blank + 1);
  }
  int64_t integer = 0;
  double real = 0;
  if (text == "true" || text == "false") {
    scalar = {ACL_BOOL, int64_t{text == "true"}};
  } else if (absl::SimpleAtoi(text, &integer)) {
    scalar = {ACL_INT64, integer};
  } else if (absl::SimpleAtod(text, &real)) {
    scalar = {ACL_FLOAT, real};
  } else {
    return Wrong(at, absl::StrCat("\"", text, "\" is no number"));
  }
  // Without a dtype the text has chosen one.
  if (dtype == ACL_DT_UNDEFINED) return scalar;
  scalar.dtype = dtype;
  // "FLOAT 2" is a floating scalar, though the text is an integer.
  if (IsFloating(dtype)) {
    scalar.value = scalar.AsDouble();
  } else if (!std::holds_alternative<int64_t>(scalar.value)) {
    return Wrong(at, absl::StrCat("\"", text, "\" is no ", DtypeName(dtype)));
  }
  return scalar;
}

template <typename T>
absl::StatusOr<AttributeValue> ReadList(absl::string_view at, absl::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) return Wrong(at, absl::StrCat("\"", text, "\" is no list"));
  std::vector<T> values;
  for (const Json& entry : json) {
    const bool fits = std::is_same_v<T, bool>      ? entry.is_boolean()
                      : std::is_same_v<T, int64_t> ? entry.is_number_integer()
                                                   : entry.is_number();
    if (!fits) return Wrong(at, absl::StrCat("\"", text, "\" has an entry of another type"));
    values.push_back(entry.get<T>());
  }
  return AttributeValue(std::move(values));
}

// The value that `text` means for an attribute, whatever its bounds.
absl::StatusOr<AttributeValue> ReadAnyValue(absl::string_view at,
                                            const AttributeDescriptor& attribute,
                                            absl::string_view text) {
  const auto is_no = [&](absl::string_view kind) {
    return Wrong(at, absl::StrCat("\"", text, "\" is no ", kind));
  };
  switch (attribute.type) {
    case AttributeType::kInt64: {
      for (const AttributeDescriptor::Name& name : attribute.names) {
        if (name.name == text) return AttributeValue(name.value);
      }
      int64_t value = 0;
      if (!absl::SimpleAtoi(text, &value)) return is_no("integer");
      return AttributeValue(value);
    }
    case AttributeType::kBool:
      if (text != "true" && text != "false") return is_no("bool");
      return AttributeValue(text == "true");
    case AttributeType::kDouble: {
      double value = 0;
      if (!absl::SimpleAtod(text, &value)) return is_no("number");
      return AttributeValue(value);
    }
    case AttributeType::kText:
      return AttributeValue(std::string(text));
    case AttributeType::kDtype: {
      const aclDataType dtype = DtypeOfName(text);
      if (dtype == ACL_DT_UNDEFINED) return is_no("dtype");
      return AttributeValue(dtype);
    }
    case AttributeType::kScalar: {
      OPSERVE_ASSIGN_OR_RETURN(Scalar scalar, ReadScalar(at, text));
      return AttributeValue(scalar);
    }
    case AttributeType::kInt64s:
      return ReadList<int64_t>(at, text);
    case AttributeType::kBools:
      return ReadList<bool>(at, text);
    case AttributeType::kDoubles:
      return ReadList<double>(at, text);
  }
  return is_no("value");
}

absl::Status ReadElements(absl::string_view at, const Json& value, size_t axis,
                          GoldenCase::Tensor* tensor) {
  if (value.is_array()) {
    // The first array at each depth decides how long all others must be.
    if (tensor->spec.shape.size() == axis) {
      // Its axes are those of its first row.
      if (!tensor->values.empty()) return Wrong(at, "rows differ in depth");
      if (axis == kMaxRank) return Wrong(at, absl::StrCat("has more than ", kMaxRank, " axes"));
      tensor->spec.shape.push_back(static_cast<int64_t>(value.size()));
    }
    if (tensor->spec.shape[axis] != static_cast<int64_t>(value.size())) {
      return Wrong(at, "rows differ in length");
    }
    for (const Json& entry : value) {
      OPSERVE_RETURN_IF_ERROR(ReadElements(at, entry, axis + 1, tensor));
    }
    return absl::OkStatus();
  }
  // A number where the first row has an array.
  if (axis != tensor->spec.shape.size()) return Wrong(at, "rows differ in depth");
  double number = 0;
  if (value.is_boolean()) {
    number = value.get<bool>();
  } else if (value.is_number()) {
    number = value.get<double>();
  } else if (!value.is_string() || !absl::SimpleAtod(value.get<std::string>(), &number)) {
    // NaN and infinities have no form in JSON; they are texts, which have been read by now.
    return Wrong(at, "an element is no number");
  }
  tensor->values.push_back(number);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<AttributeValue> ReadValue(absl::string_view at, const AttributeDescriptor& attribute,
                                         absl::string_view text) {
  OPSERVE_ASSIGN_OR_RETURN(AttributeValue value, ReadAnyValue(at, attribute, text));
  const std::string problem = ProblemOf(attribute, value);
  if (!problem.empty()) return Wrong(at, problem);
  return value;
}

absl::StatusOr<GoldenCase::Tensor> ReadTensor(absl::string_view at, absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(' ', 1));
  GoldenCase::Tensor tensor;
  tensor.spec.dtype = DtypeOfName(parts.first);
  if (tensor.spec.dtype == ACL_DT_UNDEFINED) {
    return Wrong(at, absl::StrCat("\"", parts.first, "\" is no dtype"));
  }
  absl::string_view elements = absl::StripAsciiWhitespace(parts.second);
  const bool is_empty = absl::ConsumePrefix(&elements, "empty");
  const Json json = Json::parse(elements, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return Wrong(at, absl::StrCat("\"", elements, "\" are no elements"));
  if (!is_empty) {
    OPSERVE_RETURN_IF_ERROR(ReadElements(at, json, 0, &tensor));
    // Rows of different depth can leave fewer values than the shape has elements.
    if (CountElements(tensor.spec.shape) != static_cast<int64_t>(tensor.values.size())) {
      return Wrong(at, "rows differ in depth");
    }
    return tensor;
  }
  if (!json.is_array() || json.size() > kMaxRank) {
    return Wrong(
        at, absl::StrCat("\"empty", elements, "\" has no shape of at most ", kMaxRank, " axes"));
  }
  for (const Json& extent : json) {
    if (!extent.is_number_unsigned() || extent.get<uint64_t>() > kMaxExtent) {
      return Wrong(at, absl::StrCat("\"empty", elements, "\" has an extent that is none"));
    }
    tensor.spec.shape.push_back(extent.get<int64_t>());
  }
  if (CountElements(tensor.spec.shape) != 0) {
    return Wrong(at, absl::StrCat("\"empty", elements, "\" is not empty"));
  }
  return tensor;
}

}  // namespace opserve::catalog
