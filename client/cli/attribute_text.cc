#include "client/cli/attribute_text.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace opserve::cli {
namespace {

std::string WithNumber(const v1::NamedValue& name) {
  return absl::StrCat(name.name(), " (", name.value(), ")");
}

std::optional<AttributeValue> ParseInt64(const v1::AttributeDescriptor& attribute,
                                         absl::string_view text) {
  for (const v1::NamedValue& name : attribute.names()) {
    if (name.name() == text) return name.name();
  }
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number)) return std::nullopt;
  if (attribute.has_minimum() && number < attribute.minimum()) return std::nullopt;
  if (attribute.has_maximum() && number > attribute.maximum()) return std::nullopt;
  return number;
}

std::optional<AttributeValue> ParseValue(const v1::AttributeDescriptor& attribute,
                                         absl::string_view text) {
  bool flag = false;
  double number = 0;
  switch (attribute.type()) {
    case v1::AttributeDescriptor::TYPE_INT64:
      return ParseInt64(attribute, text);
    case v1::AttributeDescriptor::TYPE_BOOL:
      if (absl::SimpleAtob(text, &flag)) return flag;
      return std::nullopt;
    case v1::AttributeDescriptor::TYPE_DOUBLE:
      if (absl::SimpleAtod(text, &number)) return number;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::string DescribeIntegers(const v1::AttributeDescriptor& attribute) {
  std::string integers = "an integer";
  if (attribute.has_minimum()) absl::StrAppend(&integers, " from ", attribute.minimum());
  if (attribute.has_maximum()) absl::StrAppend(&integers, " up to ", attribute.maximum());
  return integers;
}

}  // namespace

absl::StatusOr<NamedAttribute> ParseAttribute(const v1::AttributeDescriptor& attribute,
                                              absl::string_view text) {
  if (const std::optional<AttributeValue> value = ParseValue(attribute, text)) {
    return NamedAttribute{.name = attribute.name(), .value = *value};
  }
  return absl::InvalidArgumentError(absl::StrCat("attribute \"", attribute.name(), "\": \"", text,
                                                 "\" is not ", DescribeChoices(attribute)));
}

std::string DescribeChoices(const v1::AttributeDescriptor& attribute) {
  switch (attribute.type()) {
    case v1::AttributeDescriptor::TYPE_INT64: {
      std::vector<std::string> names;
      for (const v1::NamedValue& name : attribute.names()) names.push_back(WithNumber(name));
      if (names.empty()) return DescribeIntegers(attribute);
      return absl::StrCat(absl::StrJoin(names, ", "), " or ", DescribeIntegers(attribute));
    }
    case v1::AttributeDescriptor::TYPE_BOOL:
      return "true or false";
    case v1::AttributeDescriptor::TYPE_DOUBLE:
      return "a number";
    default:
      return "of a type that this client knows";
  }
}

std::string DescribeDefault(const v1::AttributeDescriptor& attribute) {
  const v1::AttributeValue& value = attribute.default_value();
  switch (value.value_case()) {
    case v1::AttributeValue::kInt64Value:
      for (const v1::NamedValue& name : attribute.names()) {
        if (name.value() == value.int64_value()) return WithNumber(name);
      }
      return absl::StrCat(value.int64_value());
    case v1::AttributeValue::kBoolValue:
      return value.bool_value() ? "true" : "false";
    case v1::AttributeValue::kDoubleValue:
      return absl::StrCat(value.double_value());
    case v1::AttributeValue::kName:
      return value.name();
    case v1::AttributeValue::VALUE_NOT_SET:
      return "none";
  }
  return "none";
}

}  // namespace opserve::cli
