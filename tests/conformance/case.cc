#include "tests/conformance/case.h"

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "absl/strings/escaping.h"
#include "proto/dtypes/dtype.h"

namespace opserve::conformance {
namespace {

using Json = nlohmann::json;

std::string DecodeBase64(const Json& text) {
  std::string bytes;
  if (!absl::Base64Unescape(text.get<std::string>(), &bytes)) {
    throw std::runtime_error("invalid base64");
  }
  return bytes;
}

std::optional<Tensor> ParseTensor(const Json& json) {
  if (json.is_null()) return std::nullopt;
  Tensor tensor;
  tensor.name = json.value("name", "");
  json.at("dtype").get_to(tensor.dtype);
  json.at("shape").get_to(tensor.shape);
  json.at("strides").get_to(tensor.strides);
  json.at("offset").get_to(tensor.offset);
  json.at("storage_shape").get_to(tensor.storage_shape);
  tensor.format = json.value("format", "ND");
  if (json.contains("data")) {
    tensor.storage = DecodeBase64(json["data"]);
    if (static_cast<int64_t>(tensor.storage.size()) != tensor.storage_bytes()) {
      throw std::runtime_error("data does not fill the storage");
    }
  }
  return tensor;
}

std::vector<double> ParseExpected(const Json& json) {
  const std::string bytes = DecodeBase64(json);
  std::vector<double> values(bytes.size() / sizeof(double));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(double));
  return values;
}

Case ParseCase(const Json& json) {
  Case parsed;
  json.at("id").get_to(parsed.id);
  json.at("operator").get_to(parsed.operator_name);
  json.at("tags").get_to(parsed.tags);
  json.at("expected_status").get_to(parsed.expected_status);
  for (const auto& [name, value] : json.at("attrs").items()) {
    parsed.attributes[name] =
        value.is_boolean() ? Attribute(value.get<bool>()) : Attribute(value.get<int64_t>());
  }
  for (const Json& input : json.at("inputs")) parsed.inputs.push_back(ParseTensor(input));
  parsed.output = ParseTensor(json.at("output"));

  if (parsed.output && json["output"].contains("expected")) {
    parsed.expected = ParseExpected(json["output"]["expected"]);
    json.at("atol").get_to(parsed.atol);
    json.at("rtol").get_to(parsed.rtol);
    if (static_cast<int64_t>(parsed.expected.size()) != parsed.output->num_elements()) {
      throw std::runtime_error("expected does not fill the view");
    }
  }
  if (json.contains("expected_workspace")) parsed.expected_workspace = json["expected_workspace"];
  for (const Json& name : json.value("null_params", Json::array())) {
    if (name == "workspaceSize") parsed.workspace_size_is_null = true;
    if (name == "executor") parsed.executor_is_null = true;
  }
  return parsed;
}

std::vector<Case> Load(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<Case> cases;
  for (std::string line; std::getline(file, line);) cases.push_back(ParseCase(Json::parse(line)));
  return cases;
}

int64_t Product(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

}  // namespace

int64_t Tensor::num_elements() const { return Product(shape); }

int64_t Tensor::storage_bytes() const { return Product(storage_shape) * ElementBytes(dtype); }

int64_t ElementBytes(const std::string& dtype) {
  const DtypeFacts* const facts = FindDtypeBy(&DtypeFacts::name, dtype);
  return facts == nullptr ? 1 : facts->bytes;
}

std::vector<Case> LoadValueCases(const std::string& directory, const std::string& operator_name) {
  return Load(directory + "/" + operator_name + ".values.jsonl");
}

std::vector<Case> LoadStatusCases(const std::string& directory, const std::string& operator_name) {
  return Load(directory + "/" + operator_name + ".status.jsonl");
}

}  // namespace opserve::conformance
