#include "ops/catalog/attributes.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/catalog/dtypes.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"

namespace opserve::catalog {
namespace {

// The number that `name` stands for, or the text that it is.
absl::Status ResolveName(absl::string_view operator_name, const AttributeDescriptor& attribute,
                         absl::string_view name, AttributeValue* value) {
  for (const AttributeDescriptor::Name& candidate : attribute.names) {
    if (candidate.name == name) {
      *value = candidate.value;
      return absl::OkStatus();
    }
  }
  // Two mistakes look alike on the wire: a name for an attribute without names, and a wrong one.
  return InvalidCall(
      operator_name, attribute.name,
      attribute.names.empty()
          ? absl::StrCat("takes ", TypeText(attribute.type), ", not a name")
          : absl::StrCat("unknown name \"", name, "\"; it may be ", AttributeNamesText(attribute)));
}

template <typename T, typename List>
absl::Status ReadList(absl::string_view operator_name, const AttributeDescriptor& attribute,
                      const List& list, AttributeValue* value) {
  // Before the copy: the length comes from the client.
  if (list.values_size() > kMaxListLength) {
    return InvalidCall(
        operator_name, attribute.name,
        absl::StrCat("has ", list.values_size(), " entries, at most ", kMaxListLength, " allowed"));
  }
  value->emplace<std::vector<T>>(list.values().begin(), list.values().end());
  return absl::OkStatus();
}

absl::Status ReadScalar(absl::string_view operator_name, const AttributeDescriptor& attribute,
                        const v1::ScalarValue& given, AttributeValue* value) {
  const aclDataType dtype = ToAcl(given.dtype());
  if (dtype == ACL_DT_UNDEFINED) {
    return InvalidCall(
        operator_name, attribute.name,
        absl::StrCat("has dtype ", static_cast<int>(given.dtype()), ", must be ", DtypeNames()));
  }
  Scalar scalar{dtype, given.int64_value()};
  if (IsFloating(dtype)) {
    // Clients of dynamic languages send 2 for 2.0.
    scalar.value =
        given.has_double_value() ? given.double_value() : static_cast<double>(given.int64_value());
  } else if (given.has_double_value()) {
    return InvalidCall(operator_name, attribute.name,
                       absl::StrCat("is a double of dtype ", DtypeName(dtype)));
  }
  *value = scalar;
  return absl::OkStatus();
}

// Numbers serve where scalars are expected, and lists of integers where doubles are.
void Adapt(AttributeType type, AttributeValue* value) {
  if (type == AttributeType::kScalar) {
    if (const auto* integer = std::get_if<int64_t>(value)) {
      *value = Scalar{ACL_INT64, *integer};
    } else if (const auto* truth = std::get_if<bool>(value)) {
      *value = Scalar{ACL_BOOL, int64_t{*truth}};
    } else if (const auto* real = std::get_if<double>(value)) {
      *value = Scalar{ACL_DOUBLE, *real};
    }
  } else if (type == AttributeType::kDoubles) {
    if (const auto* list = std::get_if<std::vector<int64_t>>(value)) {
      *value = std::vector<double>(list->begin(), list->end());
    }
  }
}

absl::Status ReadValue(absl::string_view operator_name, const AttributeDescriptor& attribute,
                       const v1::AttributeValue& given, AttributeValue* value) {
  switch (given.value_case()) {
    case v1::AttributeValue::kName:
      // Texts may come as names: a client that does not know the type sends words so.
      if (attribute.type != AttributeType::kText) {
        return ResolveName(operator_name, attribute, given.name(), value);
      }
      *value = given.name();
      break;
    case v1::AttributeValue::kInt64Value:
      *value = given.int64_value();
      break;
    case v1::AttributeValue::kBoolValue:
      *value = given.bool_value();
      break;
    case v1::AttributeValue::kDoubleValue:
      *value = given.double_value();
      break;
    case v1::AttributeValue::kTextValue:
      // C functions take it as a char*, which ends at a zero byte.
      if (given.text_value().find('\0') != std::string::npos || given.text_value().size() > 1024) {
        return InvalidCall(operator_name, attribute.name,
                           "is longer than 1024 bytes or has a zero byte");
      }
      *value = given.text_value();
      break;
    case v1::AttributeValue::kDtypeValue:
      *value = ToAcl(given.dtype_value());
      break;
    case v1::AttributeValue::kScalarValue:
      return ReadScalar(operator_name, attribute, given.scalar_value(), value);
    case v1::AttributeValue::kInt64List:
      return ReadList<int64_t>(operator_name, attribute, given.int64_list(), value);
    case v1::AttributeValue::kBoolList:
      return ReadList<bool>(operator_name, attribute, given.bool_list(), value);
    case v1::AttributeValue::kDoubleList:
      return ReadList<double>(operator_name, attribute, given.double_list(), value);
    case v1::AttributeValue::VALUE_NOT_SET:
      return InvalidCall(operator_name, attribute.name, "has no value");
  }
  return absl::OkStatus();
}

absl::Status ResolveValue(absl::string_view operator_name, const AttributeDescriptor& attribute,
                          const v1::AttributeValue& given, AttributeValue* value) {
  OPSERVE_RETURN_IF_ERROR(ReadValue(operator_name, attribute, given, value));
  Adapt(attribute.type, value);
  // The alternative of the variant is the type.
  if (value->index() != static_cast<size_t>(attribute.type)) {
    return InvalidCall(operator_name, attribute.name,
                       absl::StrCat("is ", TypeText(static_cast<AttributeType>(value->index())),
                                    ", must be ", TypeText(attribute.type)));
  }
  const std::string problem = ProblemOf(attribute, *value);
  return problem.empty() ? absl::OkStatus() : InvalidCall(operator_name, attribute.name, problem);
}

// One overload for each type that an attribute's value may have.
struct SetValue {
  v1::AttributeValue* message;

  void operator()(std::monostate) const {}
  void operator()(int64_t value) const { message->set_int64_value(value); }
  void operator()(bool value) const { message->set_bool_value(value); }
  void operator()(double value) const { message->set_double_value(value); }
  void operator()(const std::string& value) const { message->set_text_value(value); }
  void operator()(aclDataType value) const { message->set_dtype_value(ToWire(value)); }
  void operator()(const Scalar& value) const {
    v1::ScalarValue* scalar = message->mutable_scalar_value();
    scalar->set_dtype(ToWire(value.dtype));
    if (const auto* integer = std::get_if<int64_t>(&value.value)) {
      scalar->set_int64_value(*integer);
    } else {
      scalar->set_double_value(std::get<double>(value.value));
    }
  }
  void operator()(const std::vector<int64_t>& values) const {
    auto* list = message->mutable_int64_list();
    for (const int64_t value : values) list->add_values(value);
  }
  void operator()(const std::vector<bool>& values) const {
    auto* list = message->mutable_bool_list();
    for (const bool value : values) list->add_values(value);
  }
  void operator()(const std::vector<double>& values) const {
    auto* list = message->mutable_double_list();
    for (const double value : values) list->add_values(value);
  }
};

// Operators have few attributes; a search in order is as fast as a map.
absl::StatusOr<size_t> IndexOf(const OperatorDescriptor& descriptor, absl::string_view name) {
  const auto& attributes = descriptor.attributes;
  size_t index = 0;
  while (index < attributes.size() && attributes[index].name != name) ++index;
  if (index < attributes.size()) return index;
  return InvalidCall(
      descriptor.name, name,
      absl::StrCat("no such attribute; there are: ",
                   absl::StrJoin(attributes, ", ",
                                 [](std::string* out, const AttributeDescriptor& attribute) {
                                   absl::StrAppend(out, attribute.name);
                                 })));
}

}  // namespace

absl::StatusOr<AttributeValues> ResolveAttributes(const OperatorDescriptor& descriptor,
                                                  absl::Span<const GivenAttribute> given) {
  AttributeValues values;
  for (const AttributeDescriptor& attribute : descriptor.attributes) {
    values.push_back(attribute.default_value);
  }
  // Beside the values: a default and a given value may be equal.
  absl::InlinedVector<bool, 4> is_given(values.size(), false);
  for (const GivenAttribute& named : given) {
    OPSERVE_ASSIGN_OR_RETURN(const size_t index, IndexOf(descriptor, named.name));
    if (is_given[index]) return InvalidCall(descriptor.name, named.name, "given twice");
    is_given[index] = true;
    OPSERVE_RETURN_IF_ERROR(
        ResolveValue(descriptor.name, descriptor.attributes[index], *named.value, &values[index]));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_given[i] || !descriptor.attributes[i].is_required()) continue;
    return InvalidCall(descriptor.name, descriptor.attributes[i].name,
                       absl::StrCat("is missing; it is ", TypeText(descriptor.attributes[i].type)));
  }
  return values;
}

absl::Status ChangeAttribute(const OperatorDescriptor& descriptor, const GivenAttribute& changed,
                             AttributeValues* values) {
  OPSERVE_ASSIGN_OR_RETURN(const size_t index, IndexOf(descriptor, changed.name));
  return ResolveValue(descriptor.name, descriptor.attributes[index], *changed.value,
                      &(*values)[index]);
}

v1::AttributeValue ToProto(const AttributeValue& value) {
  v1::AttributeValue message;
  std::visit(SetValue{&message}, value);
  return message;
}

Dtype ToWire(aclDataType dtype) {
  const DtypeFacts* facts = FindDtypeBy(&DtypeFacts::acl, static_cast<int>(dtype));
  return facts == nullptr ? v1::DATA_TYPE_UNSPECIFIED : facts->dtype;
}

aclDataType ToAcl(Dtype dtype) {
  const DtypeFacts* facts = FindDtype(dtype);
  return facts == nullptr ? ACL_DT_UNDEFINED : static_cast<aclDataType>(facts->acl);
}

}  // namespace opserve::catalog
