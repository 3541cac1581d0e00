#include "ops/catalog/attribute_values.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/catalog/dtypes.h"
#include "ops/catalog/rules.h"

namespace opserve::catalog {
namespace {

std::string RangeText(const AttributeDescriptor& attribute) {
  const auto bound = [&](const std::optional<double>& value, absl::string_view none) {
    return value ? absl::StrCat(*value) : std::string(none);
  };
  return absl::StrCat("[", bound(attribute.minimum, "-inf"), ", ", bound(attribute.maximum, "inf"),
                      "]", attribute.names.empty() ? "" : ": ", AttributeNamesText(attribute));
}

// NaN is outside of every range.
bool IsInRange(const AttributeDescriptor& attribute, double value) {
  // In this form a NaN fails both comparisons.
  return (!attribute.minimum || value >= *attribute.minimum) &&
         (!attribute.maximum || value <= *attribute.maximum);
}

template <typename T>
std::string RangeProblem(const AttributeDescriptor& attribute, T value) {
  if (IsInRange(attribute, static_cast<double>(value))) return "";
  return absl::StrCat(value, " is outside ", RangeText(attribute));
}

template <typename T>
std::string ListProblem(const AttributeDescriptor& attribute, const std::vector<T>& values) {
  for (const T value : values) {
    std::string problem = RangeProblem(attribute, value);
    if (!problem.empty()) return problem;
  }
  return "";
}

}  // namespace

// Types without bounds and choices, such as flags, have no problems here.
std::string ProblemOf(const AttributeDescriptor& attribute, const AttributeValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return RangeProblem(attribute, *integer);
  if (const auto* real = std::get_if<double>(&value)) return RangeProblem(attribute, *real);
  if (const auto* scalar = std::get_if<Scalar>(&value)) {
    return RangeProblem(attribute, scalar->AsDouble());
  }
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    return ListProblem(attribute, *list);
  }
  if (const auto* list = std::get_if<std::vector<double>>(&value)) {
    return ListProblem(attribute, *list);
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    const auto& texts = attribute.texts;
    if (texts.empty() || std::find(texts.begin(), texts.end(), *text) != texts.end()) return "";
    return absl::StrCat("unknown value \"", *text, "\"; it may be ", absl::StrJoin(texts, ", "));
  }
  if (const auto* dtype = std::get_if<aclDataType>(&value)) {
    const auto& dtypes = attribute.dtypes;
    if (dtypes.empty() || std::find(dtypes.begin(), dtypes.end(), *dtype) != dtypes.end())
      return "";
    return absl::StrCat(DtypeName(*dtype), "; it may be ", DtypeList(dtypes));
  }
  return "";
}

std::string AttributeNamesText(const AttributeDescriptor& attribute) {
  return absl::StrJoin(attribute.names, ", ",
                       [](std::string* out, const AttributeDescriptor::Name& name) {
                         absl::StrAppend(out, name.name, " (", name.value, ")");
                       });
}

namespace {

struct TextOf {
  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(int64_t value) const { return absl::StrCat(value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(double value) const { return absl::StrCat(value); }
  std::string operator()(const std::string& value) const { return value; }
  std::string operator()(aclDataType value) const { return DtypeName(value); }
  std::string operator()(const Scalar& value) const {
    // BOOL is kept as an integer.
    return value.dtype == ACL_BOOL ? (*this)(value.AsDouble() != 0)
                                   : std::visit(*this, value.value);
  }
  template <typename T>
  std::string operator()(const std::vector<T>& values) const {
    return absl::StrCat(
        "[",
        absl::StrJoin(values, ", ",
                      [this](std::string* out, T value) { absl::StrAppend(out, (*this)(value)); }),
        "]");
  }
};

}  // namespace

std::string ValueText(const AttributeValue& value) { return std::visit(TextOf(), value); }

absl::string_view TypeText(AttributeType type) {
  static constexpr absl::string_view kTexts[] = {
      "an int64", "a bool",           "a double",        "a text",           "a dtype",
      "a number", "a list of int64s", "a list of bools", "a list of doubles"};
  // In the order of AttributeType, which begins at 1.
  return kTexts[static_cast<size_t>(type) - 1];
}

}  // namespace opserve::catalog
