#include "ops/catalog/descriptor_proto.h"

#include "ops/catalog/attributes.h"

namespace opserve::catalog {
namespace {

template <typename Message>
void SetDtypes(const std::vector<aclDataType>& dtypes, Message* message) {
  for (const aclDataType dtype : dtypes) message->add_dtypes(ToWire(dtype));
}

template <typename Source, typename Message>
void SetNameAndDocumentation(const Source& source, Message* message) {
  message->set_name(source.name);
  message->set_documentation(source.documentation);
}

void SetAttribute(const AttributeDescriptor& attribute, v1::AttributeDescriptor* to) {
  SetNameAndDocumentation(attribute, to);
  to->set_type(static_cast<v1::AttributeDescriptor::Type>(attribute.type));
  // Index 0 is std::monostate: no default.
  if (attribute.default_value.index() != 0) {
    *to->mutable_default_value() = ToProto(attribute.default_value);
  }
  to->set_required(attribute.is_required());
  for (const AttributeDescriptor::Name& name : attribute.names) {
    v1::NamedValue* value = to->add_names();
    value->set_name(name.name);
    value->set_value(name.value);
  }
  for (const std::string& text : attribute.texts) to->add_texts(text);
  SetDtypes(attribute.dtypes, to);
  // Bounds of integers travel as integers; they are within 2^53, so the cast is exact.
  const bool is_integer =
      attribute.type == AttributeType::kInt64 || attribute.type == AttributeType::kInt64s;
  if (attribute.minimum) {
    is_integer ? to->set_minimum(static_cast<int64_t>(*attribute.minimum))
               : to->set_lowest(*attribute.minimum);
  }
  if (attribute.maximum) {
    is_integer ? to->set_maximum(static_cast<int64_t>(*attribute.maximum))
               : to->set_highest(*attribute.maximum);
  }
}

// The enumerators of the wire's types are those of AttributeType.
static_assert(static_cast<int>(AttributeType::kInt64) == v1::AttributeDescriptor::TYPE_INT64);
static_assert(static_cast<int>(AttributeType::kScalar) == v1::AttributeDescriptor::TYPE_SCALAR);
static_assert(static_cast<int>(AttributeType::kDoubles) == v1::AttributeDescriptor::TYPE_DOUBLES);

}  // namespace

v1::OperatorDescriptor ToProto(const OperatorDescriptor& descriptor) {
  v1::OperatorDescriptor message;
  SetNameAndDocumentation(descriptor, &message);
  message.set_summary(descriptor.summary);
  for (const InputDescriptor& input : descriptor.inputs) {
    v1::InputDescriptor* to = message.add_inputs();
    SetNameAndDocumentation(input, to);
    SetDtypes(input.dtypes, to);
    to->set_optional(input.is_optional);
    to->set_list(input.is_list);
    to->set_in_place(input.output.has_value());
    to->set_contiguous(input.is_contiguous);
  }
  for (const AttributeDescriptor& attribute : descriptor.attributes) {
    SetAttribute(attribute, message.add_attributes());
  }
  for (const OutputDescriptor& output : descriptor.outputs) {
    v1::OutputDescriptor* to = message.add_outputs();
    SetNameAndDocumentation(output, to);
    SetDtypes(output.dtypes, to);
    to->set_masked(output.is_masked());
    to->set_list(output.is_list);
    to->set_in_place(output.input.has_value());
  }
  return message;
}

}  // namespace opserve::catalog
