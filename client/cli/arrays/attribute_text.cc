#include "client/cli/arrays/attribute_text.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cpp/data_type.h"
#include "proto/dtypes/dtype.h"

namespace opserve::cli {
namespace {

using Attribute = v1::AttributeDescriptor;

std::string WithNumber(const v1::NamedValue& name) {
  return absl::StrCat(name.name(), " (", name.value(), ")");
}

std::optional<int64_t> ParseInteger(const Attribute& attribute, absl::string_view text) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number)) return std::nullopt;
  if (attribute.has_minimum() && number < attribute.minimum()) return std::nullopt;
  if (attribute.has_maximum() && number > attribute.maximum()) return std::nullopt;
  return number;
}

// Has the form of ParseInteger for ParseList, though flags have no bounds.
std::optional<bool> ParseFlag(const Attribute& /*attribute*/, absl::string_view text) {
  bool flag = false;
  if (!absl::SimpleAtob(text, &flag)) return std::nullopt;
  return flag;
}

// NaN is in no bounds.
bool IsWithinBounds(const Attribute& attribute, double number) {
  return (!attribute.has_lowest() || number >= attribute.lowest()) &&
         (!attribute.has_highest() || number <= attribute.highest());
}

std::optional<double> ParseNumber(const Attribute& attribute, absl::string_view text) {
  double number = 0;
  if (!absl::SimpleAtod(text, &number) || !IsWithinBounds(attribute, number)) return std::nullopt;
  return number;
}

// As the wire names it, or as torch and NumPy do.
std::optional<DataType> ParseAnyDataType(absl::string_view text) {
  if (const std::optional<DataType> dtype = ParseDataType(text)) return dtype;
  const DtypeFacts* const facts = FindDtypeBy(&DtypeFacts::torch, absl::AsciiStrToLower(text));
  if (facts == nullptr) return std::nullopt;
  return facts->dtype;
}

std::optional<AttributeValue> ParseNameOrInteger(const Attribute& attribute,
                                                 absl::string_view text) {
  // The name travels, not its number: the daemon's catalogue decides.
  for (const v1::NamedValue& name : attribute.names()) {
    if (name.name() == text) return name.name();
  }
  return ParseInteger(attribute, text);
}

// Any text, unless the descriptor lists those that it takes.
std::optional<AttributeValue> ParseText(const Attribute& attribute, absl::string_view text) {
  const auto& texts = attribute.texts();
  if (!texts.empty() && std::find(texts.begin(), texts.end(), text) == texts.end()) {
    return std::nullopt;
  }
  return Text{.value = std::string(text)};
}

std::optional<AttributeValue> ParseDtypeValue(const Attribute& attribute, absl::string_view text) {
  const std::optional<DataType> dtype = ParseAnyDataType(text);
  const auto& dtypes = attribute.dtypes();
  if (!dtype) return std::nullopt;
  if (!dtypes.empty() && std::find(dtypes.begin(), dtypes.end(), *dtype) == dtypes.end()) {
    return std::nullopt;
  }
  return *dtype;
}

// NUMBER[:DTYPE]
std::optional<AttributeValue> ParseScalar(const Attribute& attribute, absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  const auto& [digits, dtype_name] = parts;
  const std::string lower = absl::AsciiStrToLower(digits);
  int64_t integer = 0;
  double number = 0;
  const bool is_flag = lower == "true" || lower == "false";
  // Integers are kept as such: as doubles those above 2^53 would lose digits.
  const bool is_integer = absl::SimpleAtoi(digits, &integer);
  if (is_flag) integer = lower == "true" ? 1 : 0;
  if (is_flag || is_integer) {
    number = static_cast<double>(integer);
  } else if (!absl::SimpleAtod(digits, &number)) {
    return std::nullopt;
  }
  if (!IsWithinBounds(attribute, number)) return std::nullopt;
  // With a dtype the text is a scalar. Without one it travels as a plain number, to which the
  // daemon gives the dtype.
  if (digits.size() < text.size()) {
    const std::optional<DataType> dtype = ParseAnyDataType(dtype_name);
    if (!dtype) return std::nullopt;
    if (is_flag || is_integer) return Scalar{.dtype = *dtype, .value = integer};
    return Scalar{.dtype = *dtype, .value = number};
  }
  if (is_flag) return integer != 0;
  if (is_integer) return integer;
  return number;
}

// [TEXT,TEXT,...], each element read by `parse`.
template <typename T>
std::optional<AttributeValue> ParseList(const Attribute& attribute, absl::string_view text,
                                        std::optional<T> (*parse)(const Attribute&,
                                                                  absl::string_view)) {
  text = absl::StripAsciiWhitespace(text);
  const bool opens = absl::ConsumePrefix(&text, "[");
  const bool closes = absl::ConsumeSuffix(&text, "]");
  // Both brackets or none; a shell's user may leave them out.
  if (opens != closes) return std::nullopt;
  std::vector<T> values;
  // Without brackets an empty text would be a list of one empty element.
  if (opens && absl::StripAsciiWhitespace(text).empty()) return values;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::optional<T> value = parse(attribute, absl::StripAsciiWhitespace(part));
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

std::optional<AttributeValue> ParseValue(const Attribute& attribute, absl::string_view text) {
  switch (attribute.type()) {
    case Attribute::TYPE_INT64:
      return ParseNameOrInteger(attribute, text);
    case Attribute::TYPE_BOOL:
      return ParseFlag(attribute, text);
    case Attribute::TYPE_DOUBLE:
      return ParseNumber(attribute, text);
    case Attribute::TYPE_TEXT:
      return ParseText(attribute, text);
    case Attribute::TYPE_DTYPE:
      return ParseDtypeValue(attribute, text);
    case Attribute::TYPE_SCALAR:
      return ParseScalar(attribute, text);
    case Attribute::TYPE_INT64S:
      return ParseList<int64_t>(attribute, text, &ParseInteger);
    case Attribute::TYPE_BOOLS:
      return ParseList<bool>(attribute, text, &ParseFlag);
    case Attribute::TYPE_DOUBLES:
      return ParseList<double>(attribute, text, &ParseNumber);
    // A type of a later daemon.
    default:
      return std::nullopt;
  }
}

// `what`, followed by the attribute's bounds, if any.
std::string Integers(const Attribute& attribute, absl::string_view what) {
  std::string integers(what);
  if (attribute.has_minimum()) absl::StrAppend(&integers, " from ", attribute.minimum());
  if (attribute.has_maximum()) absl::StrAppend(&integers, " up to ", attribute.maximum());
  return integers;
}

std::string Numbers(const Attribute& attribute, absl::string_view what) {
  std::string numbers(what);
  if (attribute.has_lowest()) absl::StrAppend(&numbers, " from ", attribute.lowest());
  if (attribute.has_highest()) absl::StrAppend(&numbers, " up to ", attribute.highest());
  return numbers;
}

std::string DescribeNamedIntegers(const Attribute& attribute) {
  std::vector<std::string> names;
  for (const v1::NamedValue& name : attribute.names()) names.push_back(WithNumber(name));
  const std::string integers = Integers(attribute, "an integer");
  if (names.empty()) return integers;
  return absl::StrCat(absl::StrJoin(names, ", "), " or ", integers);
}

std::string DescribeDtypes(const Attribute& attribute) {
  if (attribute.dtypes().empty()) return DtypeNames();
  return absl::StrJoin(attribute.dtypes(), ", ", [](std::string* out, int dtype) {
    absl::StrAppend(out, DataTypeName(static_cast<DataType>(dtype)));
  });
}

template <typename List>
std::string ListText(const List& list) {
  return absl::StrCat("[", absl::StrJoin(list.values(), ","), "]");
}

// With its name, if the number has one: "mean (1)".
std::string IntegerText(const Attribute& attribute, int64_t number) {
  for (const v1::NamedValue& name : attribute.names()) {
    if (name.value() == number) return WithNumber(name);
  }
  return absl::StrCat(number);
}

absl::string_view FlagText(bool flag) { return flag ? "true" : "false"; }

// In the form that ParseScalar reads.
std::string ScalarText(const v1::ScalarValue& scalar) {
  const std::string number = scalar.value_case() == v1::ScalarValue::kDoubleValue
                                 ? absl::StrCat(scalar.double_value())
                                 : absl::StrCat(scalar.int64_value());
  return absl::StrCat(number, ":", DataTypeName(scalar.dtype()));
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
    case Attribute::TYPE_INT64:
      return DescribeNamedIntegers(attribute);
    case Attribute::TYPE_BOOL:
      return "true or false";
    case Attribute::TYPE_DOUBLE:
      return Numbers(attribute, "a number");
    case Attribute::TYPE_TEXT:
      return attribute.texts().empty() ? "a text" : absl::StrJoin(attribute.texts(), ", ");
    case Attribute::TYPE_DTYPE:
      return DescribeDtypes(attribute);
    case Attribute::TYPE_SCALAR:
      return Numbers(attribute, "a number, true or false, or NUMBER:DTYPE");
    case Attribute::TYPE_INT64S:
      return Integers(attribute, "a list of integers such as [1,2]");
    case Attribute::TYPE_BOOLS:
      return "a list such as [true,false]";
    case Attribute::TYPE_DOUBLES:
      return Numbers(attribute, "a list of numbers such as [1,0.5]");
    default:
      return "of a type that this client knows";
  }
}

std::string DescribeDefault(const v1::AttributeDescriptor& attribute) {
  const v1::AttributeValue& value = attribute.default_value();
  switch (value.value_case()) {
    case v1::AttributeValue::kInt64Value:
      return IntegerText(attribute, value.int64_value());
    case v1::AttributeValue::kBoolValue:
      return std::string(FlagText(value.bool_value()));
    case v1::AttributeValue::kDoubleValue:
      return absl::StrCat(value.double_value());
    case v1::AttributeValue::kName:
      return value.name();
    case v1::AttributeValue::kTextValue:
      return value.text_value();
    case v1::AttributeValue::kDtypeValue:
      return std::string(DataTypeName(value.dtype_value()));
    case v1::AttributeValue::kScalarValue:
      return ScalarText(value.scalar_value());
    case v1::AttributeValue::kInt64List:
      return ListText(value.int64_list());
    case v1::AttributeValue::kBoolList:
      return absl::StrCat(
          "[",
          absl::StrJoin(value.bool_list().values(), ",",
                        [](std::string* out, bool flag) { absl::StrAppend(out, FlagText(flag)); }),
          "]");
    case v1::AttributeValue::kDoubleList:
      return ListText(value.double_list());
    case v1::AttributeValue::VALUE_NOT_SET:
      return "none";
  }
  return "none";
}

}  // namespace opserve::cli
