#include "ops/catalog/descriptor_proto.h"

#include <string>

namespace opserve::catalog {
namespace {

template <typename Message>
void SetDtypes(const std::vector<Dtype>& dtypes, Message* message) {
  for (Dtype dtype : dtypes) message->add_dtypes(dtype);
}

template <typename Source, typename Message>
void SetNameAndDocumentation(const Source& source, Message* message) {
  message->set_name(std::string(source.name));
  message->set_documentation(std::string(source.documentation));
}

struct SetAttributeDefault {
  v1::AttributeDescriptor* attribute;

  void operator()(int64_t value) const {
    attribute->set_type(v1::AttributeDescriptor::TYPE_INT64);
    attribute->mutable_default_value()->set_int64_value(value);
  }
  void operator()(bool value) const {
    attribute->set_type(v1::AttributeDescriptor::TYPE_BOOL);
    attribute->mutable_default_value()->set_bool_value(value);
  }
  void operator()(double value) const {
    attribute->set_type(v1::AttributeDescriptor::TYPE_DOUBLE);
    attribute->mutable_default_value()->set_double_value(value);
  }
};

}  // namespace

v1::OperatorDescriptor ToProto(const OperatorDescriptor& descriptor) {
  v1::OperatorDescriptor message;
  SetNameAndDocumentation(descriptor, &message);
  message.set_summary(std::string(descriptor.summary));
  for (const InputDescriptor& input : descriptor.inputs) {
    v1::InputDescriptor* to = message.add_inputs();
    SetNameAndDocumentation(input, to);
    SetDtypes(input.dtypes, to);
  }
  for (const AttributeDescriptor& attribute : descriptor.attributes) {
    v1::AttributeDescriptor* to = message.add_attributes();
    SetNameAndDocumentation(attribute, to);
    std::visit(SetAttributeDefault{to}, attribute.default_value);
    for (const AttributeDescriptor::Name& name : attribute.names) {
      v1::NamedValue* value = to->add_names();
      value->set_name(std::string(name.name));
      value->set_value(name.value);
    }
    if (attribute.minimum) to->set_minimum(*attribute.minimum);
    if (attribute.maximum) to->set_maximum(*attribute.maximum);
  }
  v1::OutputDescriptor* output = message.add_outputs();
  SetNameAndDocumentation(descriptor.output, output);
  SetDtypes(descriptor.output.dtypes, output);
  return message;
}

}  // namespace opserve::catalog
