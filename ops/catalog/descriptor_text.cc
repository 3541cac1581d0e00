#include "ops/catalog/descriptor_text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "ops/catalog/dtypes.h"
#include "ops/catalog/rules.h"
#include "proto/status/status_macros.h"

namespace opserve::catalog {
namespace {

using Json = nlohmann::json;

absl::Status Wrong(absl::string_view at, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(at, ": ", problem));
}

std::string Text(const Json& message, const char* field) { return message.value(field, ""); }

// "grad_output" -> "gradOutput".
std::string CamelCase(absl::string_view name) {
  std::string camel;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '_' && i + 1 < name.size()) {
      camel += absl::ascii_toupper(name[++i]);
    } else {
      camel += name[i];
    }
  }
  return camel;
}

bool NamesOutput(const Expression& expression) {
  return expression.kind == Expression::Kind::kOutput ||
         std::any_of(expression.arguments.begin(), expression.arguments.end(), NamesOutput);
}

absl::Status ReadDtypes(absl::string_view at, absl::string_view text,
                        std::vector<aclDataType>* dtypes) {
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (word == "floats") {
      dtypes->insert(dtypes->end(), {ACL_FLOAT, ACL_FLOAT16, ACL_BF16});
    } else if (word == "integers") {
      dtypes->insert(dtypes->end(), {ACL_INT8, ACL_UINT8, ACL_INT16, ACL_INT32, ACL_INT64});
    } else if (const aclDataType dtype = DtypeOfName(word); dtype != ACL_DT_UNDEFINED) {
      dtypes->push_back(dtype);
    } else {
      return Wrong(at, absl::StrCat("dtypes: \"", word, "\" is no dtype or set of them"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ArgumentKind> ReadKind(absl::string_view at, const std::string& name) {
  static constexpr std::pair<absl::string_view, ArgumentKind> kKinds[] = {
      {"TENSOR", ArgumentKind::kTensor},
      {"TENSOR_LIST", ArgumentKind::kTensorList},
      {"SCALAR", ArgumentKind::kScalar},
      {"SCALAR_LIST", ArgumentKind::kScalarList},
      {"INT64", ArgumentKind::kInt64},
      {"INT32", ArgumentKind::kInt32},
      {"INT8", ArgumentKind::kInt8},
      {"BOOL", ArgumentKind::kBool},
      {"DOUBLE", ArgumentKind::kDouble},
      {"FLOAT", ArgumentKind::kFloat},
      {"TEXT", ArgumentKind::kText},
      {"DTYPE", ArgumentKind::kDtype},
      {"INT_ARRAY", ArgumentKind::kIntArray},
      {"BOOL_ARRAY", ArgumentKind::kBoolArray},
      {"FLOAT_ARRAY", ArgumentKind::kFloatArray},
      {"UINT64", ArgumentKind::kUint64},
  };
  for (const auto& [text, kind] : kKinds) {
    if (name == text) return kind;
  }
  return Wrong(at, absl::StrCat("kind: \"", name, "\" is none"));
}

AttributeType TypeOf(ArgumentKind kind) {
  switch (kind) {
    case ArgumentKind::kBool:
      return AttributeType::kBool;
    case ArgumentKind::kDouble:
    case ArgumentKind::kFloat:
      return AttributeType::kDouble;
    case ArgumentKind::kText:
      return AttributeType::kText;
    case ArgumentKind::kDtype:
      return AttributeType::kDtype;
    case ArgumentKind::kScalar:
      return AttributeType::kScalar;
    case ArgumentKind::kIntArray:
      return AttributeType::kInt64s;
    case ArgumentKind::kBoolArray:
      return AttributeType::kBools;
    case ArgumentKind::kFloatArray:
    case ArgumentKind::kScalarList:
      return AttributeType::kDoubles;
    default:
      return AttributeType::kInt64;
  }
}

// A scalar's text: "2" is INT64, "0.5" FLOAT, "true" BOOL; "DOUBLE 0.5" names its dtype.
absl::StatusOr<Scalar> ReadScalar(absl::string_view at, absl::string_view text) {
  Scalar scalar;
  aclDataType dtype = ACL_DT_UNDEFINED;
  if (const size_t blank = text.find(' '); blank != absl::string_view::npos) {
    dtype = DtypeOfName(text.substr(0, blank));
    if (dtype == ACL_DT_UNDEFINED) return Wrong(at, absl::StrCat("\"", text, "\" names no dtype"));
    text = text.substr(blank + 1);
  }
  int64_t integer = 0;
  double real = 0;
  if (text == "true" || text == "false") {
    scalar = {ACL_BOOL, int64_t{text == "true"}};
  } else if (absl::SimpleAtoi(text, &integer)) {
    scalar = {ACL_INT64, integer};
  } else if (absl::SimpleAtod(text, &real)) {
    scalar = {ACL_FLOAT, real};
  } else {
    return Wrong(at, absl::StrCat("\"", text, "\" is no number"));
  }
  if (dtype == ACL_DT_UNDEFINED) return scalar;
  scalar.dtype = dtype;
  if (IsFloating(dtype)) {
    scalar.value = scalar.AsDouble();
  } else if (!std::holds_alternative<int64_t>(scalar.value)) {
    return Wrong(at, absl::StrCat("\"", text, "\" is no ", DtypeName(dtype)));
  }
  return scalar;
}

template <typename T>
absl::StatusOr<AttributeValue> ReadList(absl::string_view at, absl::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) return Wrong(at, absl::StrCat("\"", text, "\" is no list"));
  std::vector<T> values;
  for (const Json& entry : json) {
    const bool fits = std::is_same_v<T, bool>      ? entry.is_boolean()
                      : std::is_same_v<T, int64_t> ? entry.is_number_integer()
                                                   : entry.is_number();
    if (!fits) return Wrong(at, absl::StrCat("\"", text, "\" has an entry of another type"));
    values.push_back(entry.get<T>());
  }
  return AttributeValue(std::move(values));
}

// The value that `text` means for an attribute.
absl::StatusOr<AttributeValue> ReadValue(absl::string_view at, const AttributeDescriptor& attribute,
                                         absl::string_view text) {
  const auto is_no = [&](absl::string_view what) {
    return Wrong(at, absl::StrCat("\"", text, "\" is no ", what));
  };
  switch (attribute.type) {
    case AttributeType::kInt64: {
      for (const AttributeDescriptor::Name& name : attribute.names) {
        if (name.name == text) return AttributeValue(name.value);
      }
      int64_t value = 0;
      if (!absl::SimpleAtoi(text, &value)) return is_no("integer");
      return AttributeValue(value);
    }
    case AttributeType::kBool:
      if (text != "true" && text != "false") return is_no("bool");
      return AttributeValue(text == "true");
    case AttributeType::kDouble: {
      double value = 0;
      if (!absl::SimpleAtod(text, &value)) return is_no("number");
      return AttributeValue(value);
    }
    case AttributeType::kText:
      return AttributeValue(std::string(text));
    case AttributeType::kDtype: {
      const aclDataType dtype = DtypeOfName(text);
      if (dtype == ACL_DT_UNDEFINED) return is_no("dtype");
      return AttributeValue(dtype);
    }
    case AttributeType::kScalar: {
      OPSERVE_ASSIGN_OR_RETURN(Scalar scalar, ReadScalar(at, text));
      return AttributeValue(scalar);
    }
    case AttributeType::kInt64s:
      return ReadList<int64_t>(at, text);
    case AttributeType::kBools:
      return ReadList<bool>(at, text);
    case AttributeType::kDoubles:
      return ReadList<double>(at, text);
  }
  return is_no("value");
}

absl::Status ReadBound(absl::string_view at, const Json& argument, const char* field,
                       std::optional<double>* bound) {
  if (!argument.contains(field)) return absl::OkStatus();
  double value = 0;
  if (!absl::SimpleAtod(Text(argument, field), &value)) {
    return Wrong(at, absl::StrCat(field, ": \"", Text(argument, field), "\" is no number"));
  }
  *bound = value;
  return absl::OkStatus();
}

absl::Status ReadAttribute(absl::string_view at, const Json& argument, ArgumentKind kind,
                           AttributeDescriptor* attribute) {
  attribute->type = TypeOf(kind);
  attribute->is_optional = argument.value("optional", false);
  OPSERVE_RETURN_IF_ERROR(ReadDtypes(at, Text(argument, "dtypes"), &attribute->dtypes));
  OPSERVE_RETURN_IF_ERROR(ReadBound(at, argument, "minimum", &attribute->minimum));
  OPSERVE_RETURN_IF_ERROR(ReadBound(at, argument, "maximum", &attribute->maximum));
  const std::string names = Text(argument, "names");
  for (const absl::string_view word : absl::StrSplit(names, ' ', absl::SkipEmpty())) {
    if (attribute->type == AttributeType::kText) {
      attribute->texts.emplace_back(word);
      continue;
    }
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(word, '=');
    AttributeDescriptor::Name name{std::string(parts.first), 0};
    if (attribute->type != AttributeType::kInt64 || !absl::SimpleAtoi(parts.second, &name.value)) {
      return Wrong(at, absl::StrCat("names: \"", word, "\" names no integer"));
    }
    attribute->names.push_back(std::move(name));
  }
  if (argument.contains("default")) {
    OPSERVE_ASSIGN_OR_RETURN(
        attribute->default_value,
        ReadValue(absl::StrCat(at, ": default"), *attribute, Text(argument, "default")));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status ReadRule(absl::string_view at, const std::string& text,
                      const OperatorDescriptor& descriptor, Expression* rule) {
  absl::StatusOr<Expression> parsed = ParseRule<T>(text, descriptor);
  if (!parsed.ok()) return Wrong(at, parsed.status().message());
  *rule = *std::move(parsed);
  return absl::OkStatus();
}

absl::Status ReadElements(absl::string_view at, const Json& value, size_t axis,
                          GoldenCase::Tensor* tensor) {
  if (value.is_array()) {
    if (tensor->spec.shape.size() == axis) {
      tensor->spec.shape.push_back(static_cast<int64_t>(value.size()));
    }
    if (tensor->spec.shape[axis] != static_cast<int64_t>(value.size())) {
      return Wrong(at, "rows differ in length");
    }
    for (const Json& entry : value) {
      OPSERVE_RETURN_IF_ERROR(ReadElements(at, entry, axis + 1, tensor));
    }
    return absl::OkStatus();
  }
  if (axis != tensor->spec.shape.size()) return Wrong(at, "rows differ in depth");
  double number = 0;
  if (value.is_boolean()) {
    number = value.get<bool>();
  } else if (value.is_number()) {
    number = value.get<double>();
  } else if (!value.is_string() || !absl::SimpleAtod(value.get<std::string>(), &number)) {
    return Wrong(at, "an element is no number");
  }
  tensor->values.push_back(number);
  return absl::OkStatus();
}

// "FLOAT [[1, 2], [3, 4]]", "INT64 empty[2,0]".
absl::StatusOr<GoldenCase::Tensor> ReadTensor(absl::string_view at, absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(' ', 1));
  GoldenCase::Tensor tensor;
  tensor.spec.dtype = DtypeOfName(parts.first);
  if (tensor.spec.dtype == ACL_DT_UNDEFINED) {
    return Wrong(at, absl::StrCat("\"", parts.first, "\" is no dtype"));
  }
  absl::string_view elements = absl::StripAsciiWhitespace(parts.second);
  const bool is_empty = absl::ConsumePrefix(&elements, "empty");
  const Json json = Json::parse(elements, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return Wrong(at, absl::StrCat("\"", elements, "\" are no elements"));
  if (!is_empty) {
    OPSERVE_RETURN_IF_ERROR(ReadElements(at, json, 0, &tensor));
    return tensor;
  }
  for (const Json& extent : json) tensor.spec.shape.push_back(extent.get<int64_t>());
  return tensor;
}

class DescriptorReader {
 public:
  explicit DescriptorReader(const Json& json) : json_(json) {}

  absl::StatusOr<OperatorDescriptor> Read() {
    d_.name = Text(json_, "name");
    d_.summary = Text(json_, "summary");
    d_.documentation = Text(json_, "documentation");
    d_.stage_two = Text(json_, "function");
    d_.stage_one = absl::StrCat(d_.stage_two, "GetWorkspaceSize");
    d_.header = Text(json_, "header");
    if (d_.name.empty()) return Wrong("operator", "name: is missing");
    if (d_.stage_two.empty()) return Wrong(d_.name, "function: is missing");
    if (d_.summary.empty()) return Wrong(d_.name, "summary: is missing");
    const Json none = Json::array();
    const Json& arguments = json_.contains("argument") ? json_["argument"] : none;
    for (const Json& argument : arguments) OPSERVE_RETURN_IF_ERROR(ReadArgument(argument));
    if (d_.outputs.empty()) return Wrong(d_.name, "has no output");
    // Rules name arguments, so these come first.
    size_t output = 0;
    for (const Json& argument : arguments) {
      const std::string role = argument.value("role", "INPUT");
      if (role == "IN_PLACE") ++output;
      if (role == "OUTPUT")
        OPSERVE_RETURN_IF_ERROR(ReadOutputRules(argument, &d_.outputs[output++]));
    }
    OPSERVE_RETURN_IF_ERROR(ReadChecks("check", &d_.checks));
    const auto of_results = std::stable_partition(
        d_.checks.begin(), d_.checks.end(), [](const Expression& e) { return !NamesOutput(e); });
    d_.result_checks.assign(of_results, d_.checks.end());
    d_.checks.erase(of_results, d_.checks.end());
    OPSERVE_RETURN_IF_ERROR(ReadChecks("daemon_check", &d_.daemon_checks));
    if (json_.contains("work")) {
      OPSERVE_RETURN_IF_ERROR(ReadRule<NumberRule>(At("work"), Text(json_, "work"), d_, &d_.work));
    }
    d_.is_custom = json_.value("custom", false);
    d_.empty_first = json_.value("empty_first", false);
    d_.bf16_promotes = json_.value("bf16_promotes", false);
    d_.plain_format = json_.value("plain_format", false);
    if (json_.contains("idle_if_empty")) {
      size_t input = 0;
      while (input < d_.inputs.size() && d_.inputs[input].name != Text(json_, "idle_if_empty"))
        ++input;
      if (input == d_.inputs.size()) return Wrong(At("idle_if_empty"), "names no input");
      d_.idle_if_empty = input;
    }
    if (!json_.contains("golden")) return Wrong(d_.name, "has no golden case");
    for (const Json& golden : json_["golden"]) OPSERVE_RETURN_IF_ERROR(ReadGolden(golden));
    return std::move(d_);
  }

 private:
  std::string At(absl::string_view place) const { return absl::StrCat(d_.name, ": ", place); }

  absl::Status ReadArgument(const Json& argument) {
    const std::string name = Text(argument, "name");
    if (name.empty()) return Wrong(At("argument"), "has no name");
    const std::string at = At(name);
    ArgumentDescriptor declared;
    OPSERVE_ASSIGN_OR_RETURN(declared.kind, ReadKind(at, argument.value("kind", "TENSOR")));
    declared.vendor = argument.value("vendor", CamelCase(name));
    const std::string role = argument.value("role", "INPUT");
    const bool is_list = declared.kind == ArgumentKind::kTensorList;
    const bool is_tensor = declared.kind == ArgumentKind::kTensor || is_list;
    const auto describe = [&](auto* part) {
      part->name = name;
      part->vendor = declared.vendor;
      part->documentation = Text(argument, "documentation");
    };
    if (role == "MASK" ? declared.kind != ArgumentKind::kBoolArray
                       : role != "INPUT" && !is_tensor) {
      return Wrong(at, absl::StrCat("role ", role, " does not go with its kind"));
    }
    if (is_tensor && role != "OUTPUT") {
      declared.input = d_.inputs.size();
      InputDescriptor& input = d_.inputs.emplace_back();
      describe(&input);
      input.is_list = is_list;
      input.is_optional = argument.value("optional", false);
      OPSERVE_RETURN_IF_ERROR(ReadDtypes(at, Text(argument, "dtypes"), &input.dtypes));
      if (input.dtypes.empty()) return Wrong(at, "dtypes: is missing");
      if (role == "IN_PLACE") input.output = d_.outputs.size();
    }
    if (role == "OUTPUT" || role == "IN_PLACE") {
      declared.output = d_.outputs.size();
      OutputDescriptor& output = d_.outputs.emplace_back();
      describe(&output);
      output.is_list = is_list;
      output.input = declared.input;
      output.is_unwritten = argument.value("unwritten", false);
      if (role == "OUTPUT") {
        output.is_optional = argument.value("optional", false);
        OPSERVE_RETURN_IF_ERROR(ReadDtypes(at, Text(argument, "dtypes"), &output.dtypes));
      }
      if (argument.contains("mask")) output.mask = argument["mask"].get<size_t>();
    }
    if (!is_tensor && role == "INPUT") {
      declared.attribute = d_.attributes.size();
      AttributeDescriptor& attribute = d_.attributes.emplace_back();
      describe(&attribute);
      OPSERVE_RETURN_IF_ERROR(ReadAttribute(at, argument, declared.kind, &attribute));
    }
    d_.arguments.push_back(std::move(declared));
    return absl::OkStatus();
  }

  absl::Status ReadOutputRules(const Json& argument, OutputDescriptor* output) {
    const std::string at = At(output->name);
    if (!argument.contains("dtype") || !argument.contains("shape")) {
      return Wrong(at, "an output needs dtype and shape");
    }
    OPSERVE_RETURN_IF_ERROR(ReadRule<DtypeRule>(at, Text(argument, "dtype"), d_, &output->dtype));
    OPSERVE_RETURN_IF_ERROR(ReadRule<ShapeRule>(at, Text(argument, "shape"), d_, &output->shape));
    if (!output->is_list) return absl::OkStatus();
    if (!argument.contains("count")) return Wrong(at, "a list needs count");
    return ReadRule<NumberRule>(at, Text(argument, "count"), d_, &output->count);
  }

  absl::Status ReadChecks(const char* field, std::vector<Expression>* checks) {
    if (!json_.contains(field)) return absl::OkStatus();
    for (const Json& text : json_[field]) {
      OPSERVE_RETURN_IF_ERROR(
          ReadRule<CheckRule>(At(field), text.get<std::string>(), d_, &checks->emplace_back()));
    }
    return absl::OkStatus();
  }

  // "name = value"; of a list "name.0 = value".
  template <typename Descriptors>
  absl::Status ReadTensors(const Json& golden, const char* field, const Descriptors& descriptors,
                           std::vector<std::vector<GoldenCase::Tensor>>* tensors) {
    tensors->resize(descriptors.size());
    if (!golden.contains(field)) return absl::OkStatus();
    for (const Json& line : golden[field]) {
      const std::string text = line.get<std::string>();
      const std::pair<absl::string_view, absl::string_view> parts =
          absl::StrSplit(text, absl::MaxSplits(" = ", 1));
      const std::string at = At(absl::StrCat("golden: ", parts.first));
      const absl::string_view name = parts.first.substr(0, parts.first.find('.'));
      size_t index = 0;
      while (index < descriptors.size() && descriptors[index].name != name) ++index;
      if (index == descriptors.size()) return Wrong(at, absl::StrCat("no such ", field));
      OPSERVE_ASSIGN_OR_RETURN(GoldenCase::Tensor tensor, ReadTensor(at, parts.second));
      if (!descriptors[index].is_list && !(*tensors)[index].empty())
        return Wrong(at, "given twice");
      (*tensors)[index].push_back(std::move(tensor));
    }
    return absl::OkStatus();
  }

  absl::Status ReadGolden(const Json& json) {
    GoldenCase golden;
    OPSERVE_RETURN_IF_ERROR(ReadTensors(json, "input", d_.inputs, &golden.inputs));
    OPSERVE_RETURN_IF_ERROR(ReadTensors(json, "output", d_.outputs, &golden.outputs));
    for (const AttributeDescriptor& attribute : d_.attributes) {
      golden.attributes.push_back(attribute.default_value);
    }
    const Json none = Json::array();
    for (const Json& line : json.contains("attribute") ? json["attribute"] : none) {
      const std::string text = line.get<std::string>();
      const std::pair<absl::string_view, absl::string_view> parts =
          absl::StrSplit(text, absl::MaxSplits(" = ", 1));
      const std::string at = At(absl::StrCat("golden: ", parts.first));
      size_t index = 0;
      while (index < d_.attributes.size() && d_.attributes[index].name != parts.first) ++index;
      if (index == d_.attributes.size()) return Wrong(at, "no such attribute");
      OPSERVE_ASSIGN_OR_RETURN(golden.attributes[index],
                               ReadValue(at, d_.attributes[index], parts.second));
    }
    for (size_t i = 0; i < d_.attributes.size(); ++i) {
      if (golden.attributes[i].index() != 0 || d_.attributes[i].is_optional) continue;
      return Wrong(At("golden"), absl::StrCat("attribute ", d_.attributes[i].name, " is missing"));
    }
    golden.tolerance = json.value("tolerance", 1e-3);
    d_.golden.push_back(std::move(golden));
    return absl::OkStatus();
  }

  const Json& json_;
  OperatorDescriptor d_;
};

}  // namespace

absl::StatusOr<OperatorDescriptor> ReadDescriptor(absl::string_view json) {
  const Json parsed = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return Wrong("operator", "is no JSON object");
  return DescriptorReader(parsed).Read();
}

}  // namespace opserve::catalog
