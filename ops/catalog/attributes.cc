#include "ops/catalog/attributes.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/status/error.h"

namespace opserve::catalog {
namespace {

absl::string_view TypeName(const AttributeValue& value) {
  static constexpr absl::string_view kNames[] = {"an int64", "a bool", "a double"};
  return kNames[value.index()];
}

// Writes the number that `name` stands for, or says which names there are.
absl::Status ResolveName(absl::string_view operator_name, const AttributeDescriptor& attribute,
                         absl::string_view name, AttributeValue* value) {
  for (const AttributeDescriptor::Name& candidate : attribute.names) {
    if (candidate.name == name) {
      *value = candidate.value;
      return absl::OkStatus();
    }
  }
  return InvalidCall(
      operator_name, attribute.name,
      attribute.names.empty()
          ? absl::StrCat("takes ", TypeName(attribute.default_value), ", not a name")
          : absl::StrCat("unknown name \"", name, "\"; it may be ", AttributeNamesText(attribute)));
}

absl::Status CheckRange(absl::string_view operator_name, const AttributeDescriptor& attribute,
                        int64_t value) {
  const int64_t minimum = attribute.minimum.value_or(std::numeric_limits<int64_t>::min());
  const int64_t maximum = attribute.maximum.value_or(std::numeric_limits<int64_t>::max());
  if (value < minimum || value > maximum) {
    return InvalidCall(
        operator_name, attribute.name,
        absl::StrCat(value, " is outside [", minimum, ", ", maximum, "]",
                     attribute.names.empty() ? "" : ": ", AttributeNamesText(attribute)));
  }
  return absl::OkStatus();
}

absl::Status ResolveValue(absl::string_view operator_name, const AttributeDescriptor& attribute,
                          const v1::AttributeValue& given, AttributeValue* value) {
  switch (given.value_case()) {
    case v1::AttributeValue::kName:
      return ResolveName(operator_name, attribute, given.name(), value);
    case v1::AttributeValue::kInt64Value:
      *value = given.int64_value();
      break;
    case v1::AttributeValue::kBoolValue:
      *value = given.bool_value();
      break;
    case v1::AttributeValue::kDoubleValue:
      *value = given.double_value();
      break;
    case v1::AttributeValue::VALUE_NOT_SET:
      return InvalidCall(operator_name, attribute.name, "has no value");
  }
  if (value->index() != attribute.default_value.index()) {
    return InvalidCall(
        operator_name, attribute.name,
        absl::StrCat("is ", TypeName(*value), ", must be ", TypeName(attribute.default_value)));
  }
  if (const int64_t* number = std::get_if<int64_t>(value)) {
    return CheckRange(operator_name, attribute, *number);
  }
  return absl::OkStatus();
}

}  // namespace

std::string AttributeNamesText(const AttributeDescriptor& attribute) {
  return absl::StrJoin(attribute.names, ", ",
                       [](std::string* out, const AttributeDescriptor::Name& name) {
                         absl::StrAppend(out, name.name, " (", name.value, ")");
                       });
}

absl::StatusOr<AttributeValues> ResolveAttributes(
    const OperatorDescriptor& descriptor,
    const google::protobuf::RepeatedPtrField<v1::NamedAttribute>& given) {
  AttributeValues values;
  for (const AttributeDescriptor& attribute : descriptor.attributes) {
    values.push_back(attribute.default_value);
  }
  absl::InlinedVector<bool, 4> is_given(values.size(), false);
  for (const v1::NamedAttribute& named : given) {
    size_t index = 0;
    while (index < values.size() && descriptor.attributes[index].name != named.name()) ++index;
    if (index == values.size()) {
      return InvalidCall(
          descriptor.name, named.name(),
          absl::StrCat("no such attribute; there are: ",
                       absl::StrJoin(descriptor.attributes, ", ",
                                     [](std::string* out, const AttributeDescriptor& attribute) {
                                       absl::StrAppend(out, attribute.name);
                                     })));
    }
    if (is_given[index]) return InvalidCall(descriptor.name, named.name(), "given twice");
    is_given[index] = true;
    if (absl::Status status = ResolveValue(descriptor.name, descriptor.attributes[index],
                                           named.value(), &values[index]);
        !status.ok()) {
      return status;
    }
  }
  return values;
}

}  // namespace opserve::catalog
