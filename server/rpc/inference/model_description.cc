#include "server/rpc/inference/model_description.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/catalog/attributes.h"
#include "server/rpc/inference/models.h"

namespace opserve::server {
namespace {

constexpr char kPlatform[] = "opserve";
constexpr int64_t kAnySize = -1;

std::string PlainDatatypes(const std::vector<Dtype>& dtypes) {
  return absl::StrJoin(dtypes, ",", [](std::string* out, Dtype dtype) {
    absl::StrAppend(out, DatatypeName(dtype));
  });
}

struct DefaultText {
  std::string operator()(int64_t value) const { return absl::StrCat("int64, default ", value); }
  std::string operator()(bool value) const {
    return absl::StrCat("bool, default ", value ? "true" : "false");
  }
  std::string operator()(double value) const { return absl::StrCat("double, default ", value); }
};

std::string AttributeText(const catalog::AttributeDescriptor& attribute) {
  return absl::StrCat(std::visit(DefaultText(), attribute.default_value),
                      attribute.names.empty() ? "" : "; one of ",
                      catalog::AttributeNamesText(attribute), ". ", attribute.documentation);
}

// What the protocol has no fields for.
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
  properties.emplace_back(absl::StrCat("datatypes.", model.output.name),
                          PlainDatatypes(model.output.dtypes));
  return properties;
}

template <typename Tensor>
void DescribeTensor(const Tensor& from, inference::ModelMetadataResponse::TensorMetadata* to) {
  to->set_name(std::string(from.name));
  to->set_datatype(std::string(DatatypeName(from.dtypes.front())));
  to->add_shape(kAnySize);
}

template <typename Tensor, typename Message>
void DescribeInConfig(const Tensor& from, Message* to) {
  to->set_name(std::string(from.name));
  to->set_data_type(ToModelDataType(from.dtypes.front()));
  to->add_dims(kAnySize);
}

}  // namespace

void DescribeModel(const catalog::OperatorDescriptor& model,
                   inference::ModelMetadataResponse* metadata) {
  metadata->set_name(std::string(model.name));
  metadata->add_versions(std::string(kModelVersion));
  metadata->set_platform(kPlatform);
  for (const catalog::InputDescriptor& input : model.inputs) {
    DescribeTensor(input, metadata->add_inputs());
  }
  DescribeTensor(model.output, metadata->add_outputs());
  for (auto& [name, text] : PropertiesOf(model)) {
    (*metadata->mutable_properties())[name] = std::move(text);
  }
}

void DescribeModel(const catalog::OperatorDescriptor& model, inference::ModelConfig* config) {
  config->set_name(std::string(model.name));
  config->set_platform(kPlatform);
  config->set_backend(kPlatform);
  for (const catalog::InputDescriptor& input : model.inputs) {
    DescribeInConfig(input, config->add_input());
  }
  DescribeInConfig(model.output, config->add_output());
  for (auto& [name, text] : PropertiesOf(model)) {
    (*config->mutable_parameters())[name].set_string_value(std::move(text));
  }
}

}  // namespace opserve::server
