#include "server/kserve/model_description.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/catalog/attributes.h"
#include "server/kserve/models.h"

namespace opserve::server {
namespace {

constexpr char kPlatform[] = "opserve";
constexpr int64_t kAnySize = -1;

std::string PlainDatatypes(const std::vector<aclDataType>& dtypes) {
  return absl::StrJoin(dtypes, ",", [](std::string* out, aclDataType dtype) {
    absl::StrAppend(out, DatatypeName(catalog::ToWire(dtype)));
  });
}

// "int64, default 1; one of none (0), mean (1). How the loss is reduced."
std::string AttributeText(const catalog::AttributeDescriptor& attribute) {
  static constexpr absl::string_view kTypes[] = {"int64",      "bool",      "double",
                                                 "text",       "dtype",     "number",
                                                 "int64 list", "bool list", "double list"};
  // By the number of catalog::AttributeType, which begins at 1.
  std::string text(kTypes[static_cast<size_t>(attribute.type) - 1]);
  if (attribute.default_value.index() != 0) {
    absl::StrAppend(&text, ", default ", catalog::ValueText(attribute.default_value));
  } else {
    absl::StrAppend(&text, attribute.is_optional ? ", may be left out" : ", required");
  }
  const std::string names = attribute.texts.empty() ? catalog::AttributeNamesText(attribute)
                                                    : absl::StrJoin(attribute.texts, ", ");
  return absl::StrCat(text, names.empty() ? "" : "; one of ", names, ". ", attribute.documentation);
}

// The dtypes of an output: those that a caller may ask for, or, where the operator decides, the one
// dtype of its rule, else those of its first input.
std::vector<aclDataType> DtypesOf(const catalog::OperatorDescriptor& model,
                                  const catalog::OutputDescriptor& output) {
  if (!output.dtypes.empty()) return output.dtypes;
  if (output.dtype.kind == catalog::Expression::Kind::kDtype) return {output.dtype.dtype};
  if (output.input) return model.inputs[*output.input].dtypes;
  return model.inputs.empty() ? std::vector<aclDataType>{ACL_FLOAT} : model.inputs.front().dtypes;
}

// The facts without a field in the protocol.
std::vector<std::pair<std::string, std::string>> PropertiesOf(
    const catalog::OperatorDescriptor& model) {
  std::vector<std::pair<std::string, std::string>> properties = {
      {"summary", std::string(model.summary)}, {"documentation", std::string(model.documentation)}};
  for (const catalog::AttributeDescriptor& attribute : model.attributes) {
    properties.emplace_back(absl::StrCat("parameter.", attribute.name), AttributeText(attribute));
  }
  for (const catalog::InputDescriptor& input : model.inputs) {
    properties.emplace_back(absl::StrCat("datatypes.", input.name), PlainDatatypes(input.dtypes));
  }
  for (const catalog::OutputDescriptor& output : model.outputs) {
    properties.emplace_back(absl::StrCat("datatypes.", output.name),
                            PlainDatatypes(DtypesOf(model, output)));
  }
  return properties;
}

// A list's name stands for those of its tensors.
template <typename Tensor>
void DescribeTensor(const Tensor& from, aclDataType dtype,
                    inference::ModelMetadataResponse::TensorMetadata* to) {
  // The first tensor of a list stands for all.
  to->set_name(from.is_list ? absl::StrCat(from.name, ".0") : from.name);
  to->set_datatype(std::string(DatatypeName(catalog::ToWire(dtype))));
  to->add_shape(kAnySize);
}

template <typename Tensor, typename Message>
void DescribeInConfig(const Tensor& from, aclDataType dtype, Message* to) {
  to->set_name(from.is_list ? absl::StrCat(from.name, ".0") : from.name);
  to->set_data_type(ToModelDataType(catalog::ToWire(dtype)));
  to->add_dims(kAnySize);
}

}  // namespace

void DescribeModel(const catalog::OperatorDescriptor& model,
                   inference::ModelMetadataResponse* metadata) {
  metadata->set_name(std::string(model.name));
  metadata->add_versions(std::string(kModelVersion));
  metadata->set_platform(kPlatform);
  for (const catalog::InputDescriptor& input : model.inputs) {
    DescribeTensor(input, input.dtypes.front(), metadata->add_inputs());
  }
  for (const catalog::OutputDescriptor& output : model.outputs) {
    DescribeTensor(output, DtypesOf(model, output).front(), metadata->add_outputs());
  }
  for (auto& [name, text] : PropertiesOf(model)) {
    (*metadata->mutable_properties())[name] = std::move(text);
  }
}

void DescribeModel(const catalog::OperatorDescriptor& model, inference::ModelConfig* config) {
  config->set_name(std::string(model.name));
  config->set_platform(kPlatform);
  config->set_backend(kPlatform);
  for (const catalog::InputDescriptor& input : model.inputs) {
    DescribeInConfig(input, input.dtypes.front(), config->add_input());
    // Only a configuration can say so; metadata has no field for it.
    config->mutable_input()->rbegin()->set_optional(input.is_optional);
  }
  for (const catalog::OutputDescriptor& output : model.outputs) {
    DescribeInConfig(output, DtypesOf(model, output).front(), config->add_output());
  }
  for (auto& [name, text] : PropertiesOf(model)) {
    (*config->mutable_parameters())[name].set_string_value(std::move(text));
  }
}

}  // namespace opserve::server
