#include "ops/catalog/descriptor_text.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "ops/catalog/description_values.h"
#include "ops/catalog/dtypes.h"
#include "ops/catalog/golden_rules.h"
#include "ops/catalog/rules.h"
#include "proto/status/status_macros.h"

namespace opserve::catalog {
namespace {

using Json = nlohmann::json;

absl::Status Wrong(absl::string_view at, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(at, ": ", problem));
}

// Names of operators and arguments are words of metrics, log lines and command lines.
constexpr size_t kMaxNameBytes = 64;
constexpr size_t kMaxArguments = 64;
// Integers that a double holds exactly.
constexpr double kMaxIntegerBound = 0x1p53;

// "" if the field is left out, or is a number as an enumerator without a name.
std::string Text(const Json& message, const char* field) {
  const auto found = message.find(field);
  return found != message.end() && found->is_string() ? found->get<std::string>() : "";
}

// The name of an enumerator; `otherwise` if the field is left out.
std::string Enumerator(const Json& message, const char* field, const char* otherwise) {
  return message.contains(field) ? Text(message, field) : otherwise;
}

bool IsName(absl::string_view name, bool has_upper_case) {
  if (name.empty() || name.size() > kMaxNameBytes || absl::ascii_isdigit(name[0])) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) {
    return absl::ascii_isalnum(c) ? has_upper_case || !absl::ascii_isupper(c) : c == '_';
  });
}

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

bool IsPassedByValue(ArgumentKind kind) {
  switch (kind) {
    case ArgumentKind::kInt64:
    case ArgumentKind::kUint64:
    case ArgumentKind::kInt32:
    case ArgumentKind::kInt8:
    case ArgumentKind::kBool:
    case ArgumentKind::kDouble:
    case ArgumentKind::kFloat:
    case ArgumentKind::kDtype:
      return true;
    default:
      return false;
  }
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

absl::Status ReadBound(absl::string_view at, const Json& argument, const char* field,
                       const AttributeDescriptor& attribute, std::optional<double>* bound) {
  if (!argument.contains(field)) return absl::OkStatus();
  double value = 0;
  if (!absl::SimpleAtod(Text(argument, field), &value) || std::isnan(value)) {
    return Wrong(at, absl::StrCat(field, ": \"", Text(argument, field), "\" is no number"));
  }
  // A bound is a double; beyond 2^53 it would not compare integers exactly.
  const bool is_integer =
      attribute.type == AttributeType::kInt64 || attribute.type == AttributeType::kInt64s;
  if (is_integer && !(std::abs(value) <= kMaxIntegerBound)) {
    return Wrong(at, absl::StrCat(field, ": ", value, " is beyond 2^53"));
  }
  *bound = value;
  return absl::OkStatus();
}

absl::Status ReadAttribute(absl::string_view at, const Json& argument, ArgumentKind kind,
                           AttributeDescriptor* attribute, DescriptionPlace* place) {
  attribute->type = TypeOf(kind);
  attribute->is_optional = argument.value("optional", false);
  // place_ moves ahead of each step, so that an error finds the field that is being read.
  place->part = "dtypes";
  OPSERVE_RETURN_IF_ERROR(ReadDtypes(at, Text(argument, "dtypes"), &attribute->dtypes));
  place->part = "minimum";
  OPSERVE_RETURN_IF_ERROR(ReadBound(at, argument, "minimum", *attribute, &attribute->minimum));
  place->part = "maximum";
  OPSERVE_RETURN_IF_ERROR(ReadBound(at, argument, "maximum", *attribute, &attribute->maximum));
  place->part = "names";
  const std::string names = Text(argument, "names");
  for (const absl::string_view word : absl::StrSplit(names, ' ', absl::SkipEmpty())) {
    if (attribute->type == AttributeType::kText) {
      attribute->texts.emplace_back(word);
      continue;
    }
    // "mean=1". Texts have no numbers: the words themselves are the values.
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(word, '=');
    AttributeDescriptor::Name name{std::string(parts.first), 0};
    if (attribute->type != AttributeType::kInt64 || !absl::SimpleAtoi(parts.second, &name.value)) {
      return Wrong(at, absl::StrCat("names: \"", word, "\" names no integer"));
    }
    attribute->names.push_back(std::move(name));
  }
  place->part = "default";
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

class DescriptorReader {
 public:
  DescriptorReader(const Json& json, DescriptionPlace* place) : json_(json), place_(*place) {}

  absl::StatusOr<OperatorDescriptor> Read() {
    OPSERVE_RETURN_IF_ERROR(ReadNames());
    const Json none = Json::array();
    const Json& arguments = json_.contains("argument") ? json_["argument"] : none;
    // Before the loop: the description of an operator pack may have any size.
    if (arguments.size() > kMaxArguments) {
      return Wrong(d_.name, absl::StrCat("has ", arguments.size(), " arguments, at most ",
                                         kMaxArguments, " allowed"));
    }
    int number = 0;
    for (const Json& argument : arguments) {
      place_ = {.field = "argument", .index = number++};
      OPSERVE_RETURN_IF_ERROR(ReadArgument(argument));
    }
    place_ = {};
    if (d_.outputs.empty()) return Wrong(d_.name, "has no output");
    // Rules name arguments, so these come first.
    size_t output = 0;
    number = 0;
    for (const Json& argument : arguments) {
      place_ = {.field = "argument", .index = number++};
      // Outputs in place have no rules: they are as their input.
      const std::string role = Enumerator(argument, "role", "INPUT");
      if (role == "IN_PLACE") ++output;
      if (role == "OUTPUT")
        OPSERVE_RETURN_IF_ERROR(ReadOutputRules(argument, &d_.outputs[output++]));
    }
    OPSERVE_RETURN_IF_ERROR(CheckMask());
    OPSERVE_RETURN_IF_ERROR(ReadChecks("check", &d_.checks));
    // Checks that name outputs run after the inference. Both halves keep the order of the
    // description, which is that of the vendor's checks.
    const auto of_results = std::stable_partition(
        d_.checks.begin(), d_.checks.end(), [](const Expression& e) { return !NamesOutput(e); });
    d_.result_checks.assign(of_results, d_.checks.end());
    d_.checks.erase(of_results, d_.checks.end());
    OPSERVE_RETURN_IF_ERROR(ReadChecks("daemon_check", &d_.daemon_checks));
    if (json_.contains("work")) {
      place_ = {.field = "work"};
      OPSERVE_RETURN_IF_ERROR(ReadRule<NumberRule>(At("work"), Text(json_, "work"), d_, &d_.work));
    }
    d_.is_custom = json_.value("custom", false);
    d_.empty_first = json_.value("empty_first", false);
    d_.bf16_promotes = json_.value("bf16_promotes", false);
    d_.plain_format = json_.value("plain_format", false);
    if (json_.contains("idle_if_empty")) {
      place_ = {.field = "idle_if_empty"};
      size_t input = 0;
      while (input < d_.inputs.size() && d_.inputs[input].name != Text(json_, "idle_if_empty"))
        ++input;
      if (input == d_.inputs.size()) return Wrong(At("idle_if_empty"), "names no input");
      d_.idle_if_empty = input;
    }
    place_ = {};
    if (!json_.contains("golden")) return Wrong(d_.name, "has no golden case");
    number = 0;
    for (const Json& golden : json_["golden"]) {
      place_ = {.field = "golden", .index = number++};
      OPSERVE_RETURN_IF_ERROR(ReadGolden(golden));
    }
    return std::move(d_);
  }

 private:
  std::string At(absl::string_view place) const { return absl::StrCat(d_.name, ": ", place); }

  absl::Status ReadNames() {
    d_.name = Text(json_, "name");
    d_.summary = Text(json_, "summary");
    d_.documentation = Text(json_, "documentation");
    d_.stage_two = Text(json_, "function");
    d_.stage_one = absl::StrCat(d_.stage_two, "GetWorkspaceSize");
    d_.header = Text(json_, "header");
    place_ = {.field = "name"};
    if (d_.name.empty()) return Wrong("operator", "name: is missing");
    if (!IsName(d_.name, /*has_upper_case=*/true)) {
      return Wrong("operator", absl::StrCat("name: \"", absl::CHexEscape(d_.name),
                                            "\" must be letters, digits and _, at most ",
                                            kMaxNameBytes, " of them"));
    }
    place_ = {.field = "function"};
    if (d_.stage_two.empty()) return Wrong(d_.name, "function: is missing");
    if (!IsName(d_.stage_two, /*has_upper_case=*/true)) {
      return Wrong(d_.name, absl::StrCat("function: \"", absl::CHexEscape(d_.stage_two),
                                         "\" is no name of a function"));
    }
    place_ = {.field = "summary"};
    if (d_.summary.empty()) return Wrong(d_.name, "summary: is missing");
    place_ = {};
    return absl::OkStatus();
  }

  absl::Status ReadArgument(const Json& argument) {
    const std::string name = Text(argument, "name");
    place_.part = "name";
    if (name.empty()) return Wrong(At("argument"), "has no name");
    if (!IsName(name, /*has_upper_case=*/false)) {
      return Wrong(At("argument"), absl::StrCat("name: \"", absl::CHexEscape(name),
                                                "\" must be small letters, digits and _, at most ",
                                                kMaxNameBytes, " of them"));
    }
    const std::string at = At(name);
    // Names are unique over inputs, outputs and attributes: rules and requests use them without a
    // role.
    if (!names_.insert(name).second) return Wrong(at, "two arguments have this name");
    ArgumentDescriptor declared;
    place_.part = "kind";
    OPSERVE_ASSIGN_OR_RETURN(declared.kind, ReadKind(at, Enumerator(argument, "kind", "TENSOR")));
    declared.vendor = argument.contains("vendor") ? Text(argument, "vendor") : CamelCase(name);
    place_.part = "role";
    const std::string role = Enumerator(argument, "role", "INPUT");
    const bool is_list = declared.kind == ArgumentKind::kTensorList;
    const bool is_tensor = declared.kind == ArgumentKind::kTensor || is_list;
    const auto describe = [&](auto* part) {
      part->name = name;
      part->vendor = declared.vendor;
      part->documentation = Text(argument, "documentation");
    };
    if (role != "INPUT" && role != "OUTPUT" && role != "IN_PLACE" && role != "MASK") {
      return Wrong(at, absl::StrCat("role: \"", role, "\" is none"));
    }
    // A mask is an array of flags, and only tensors are written.
    if (role == "MASK" ? declared.kind != ArgumentKind::kBoolArray
                       : role != "INPUT" && !is_tensor) {
      return Wrong(at, absl::StrCat("role ", role, " does not go with its kind"));
    }
    if (role == "MASK" && std::exchange(has_mask_, true)) return Wrong(at, "is a second mask");
    place_.part = "optional";
    const bool is_optional = argument.value("optional", false);
    // The ABI has no null for numbers that are passed by value.
    if (is_optional && IsPassedByValue(declared.kind)) {
      return Wrong(at, "optional: no null pointer stands for an argument of its kind");
    }
    place_.part = "contiguous";
    const bool is_contiguous = argument.value("contiguous", false);
    // The daemon gives every output, and so every tensor that is changed in place, memory of the
    // call's own.
    if (is_contiguous && (!is_tensor || role != "INPUT")) {
      return Wrong(at, "contiguous: belongs to tensors of the role INPUT; others are contiguous");
    }
    if (is_tensor && role != "OUTPUT") {
      declared.input = d_.inputs.size();
      InputDescriptor& input = d_.inputs.emplace_back();
      describe(&input);
      input.is_list = is_list;
      input.is_optional = is_optional;
      input.is_contiguous = is_contiguous;
      place_.part = "dtypes";
      OPSERVE_RETURN_IF_ERROR(ReadDtypes(at, Text(argument, "dtypes"), &input.dtypes));
      if (input.dtypes.empty()) return Wrong(at, "dtypes: is missing");
      // An output in place is appended right below, at this index.
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
        output.is_optional = is_optional;
        place_.part = "dtypes";
        OPSERVE_RETURN_IF_ERROR(ReadDtypes(at, Text(argument, "dtypes"), &output.dtypes));
      }
      place_.part = "mask";
      if (argument.contains("mask")) {
        const int64_t mask = argument.value("mask", int64_t{-1});
        if (mask < 0 || mask >= static_cast<int64_t>(kMaxArguments)) {
          return Wrong(at,
                       absl::StrCat("mask: ", mask, " is outside [0, ", kMaxArguments - 1, "]"));
        }
        output.mask = static_cast<size_t>(mask);
      }
    }
    if (!is_tensor && role == "INPUT") {
      declared.attribute = d_.attributes.size();
      AttributeDescriptor& attribute = d_.attributes.emplace_back();
      describe(&attribute);
      OPSERVE_RETURN_IF_ERROR(ReadAttribute(at, argument, declared.kind, &attribute, &place_));
    }
    place_.part = nullptr;
    d_.arguments.push_back(std::move(declared));
    return absl::OkStatus();
  }

  // Masked outputs need an argument that says which of them are wanted.
  absl::Status CheckMask() {
    place_ = {};
    // The mask may come behind the outputs that it is for, so this waits for all arguments.
    for (const OutputDescriptor& output : d_.outputs) {
      if (output.mask && !has_mask_) {
        return Wrong(At(output.name), "mask: no argument has the role MASK");
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadOutputRules(const Json& argument, OutputDescriptor* output) {
    const std::string at = At(output->name);
    if (!argument.contains("dtype") || !argument.contains("shape")) {
      return Wrong(at, "an output needs dtype and shape");
    }
    place_.part = "dtype";
    OPSERVE_RETURN_IF_ERROR(ReadRule<DtypeRule>(at, Text(argument, "dtype"), d_, &output->dtype));
    place_.part = "shape";
    OPSERVE_RETURN_IF_ERROR(ReadRule<ShapeRule>(at, Text(argument, "shape"), d_, &output->shape));
    place_.part = nullptr;
    if (!output->is_list) return absl::OkStatus();
    if (!argument.contains("count")) return Wrong(at, "a list needs count");
    place_.part = "count";
    return ReadRule<NumberRule>(at, Text(argument, "count"), d_, &output->count);
  }

  absl::Status ReadChecks(const char* field, std::vector<Expression>* checks) {
    if (!json_.contains(field)) return absl::OkStatus();
    int number = 0;
    for (const Json& text : json_[field]) {
      place_ = {.field = field, .index = number++};
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
    place_.part = field;
    place_.part_index = 0;
    for (const Json& line : golden[field]) {
      const std::string text = line.get<std::string>();
      const std::pair<absl::string_view, absl::string_view> parts =
          absl::StrSplit(text, absl::MaxSplits(" = ", 1));
      const std::string at = At(absl::StrCat("golden: ", parts.first));
      // Tensors of a list stand in their order; the number behind the dot is for the reader.
      const absl::string_view name = parts.first.substr(0, parts.first.find('.'));
      size_t index = 0;
      while (index < descriptors.size() && descriptors[index].name != name) ++index;
      if (index == descriptors.size()) return Wrong(at, absl::StrCat("no such ", field));
      OPSERVE_ASSIGN_OR_RETURN(GoldenCase::Tensor tensor, ReadTensor(at, parts.second));
      if (!descriptors[index].is_list && !(*tensors)[index].empty())
        return Wrong(at, "given twice");
      // Outputs without a choice of dtypes have that of their rule, which the judge knows.
      const std::vector<aclDataType>& dtypes = descriptors[index].dtypes;
      if (!dtypes.empty() &&
          std::find(dtypes.begin(), dtypes.end(), tensor.spec.dtype) == dtypes.end()) {
        return Wrong(at, absl::StrCat("dtype ", DtypeName(tensor.spec.dtype), "; it may be ",
                                      DtypeList(dtypes)));
      }
      (*tensors)[index].push_back(std::move(tensor));
      ++place_.part_index;
    }
    return absl::OkStatus();
  }

  absl::Status ReadGoldenAttributes(const Json& json, GoldenCase* golden) {
    // Attributes that the case leaves out have their defaults, as in a call.
    for (const AttributeDescriptor& attribute : d_.attributes) {
      golden->attributes.push_back(attribute.default_value);
    }
    const Json none = Json::array();
    place_.part = "attribute";
    place_.part_index = 0;
    for (const Json& line : json.contains("attribute") ? json["attribute"] : none) {
      const std::string text = line.get<std::string>();
      const std::pair<absl::string_view, absl::string_view> parts =
          absl::StrSplit(text, absl::MaxSplits(" = ", 1));
      const std::string at = At(absl::StrCat("golden: ", parts.first));
      size_t index = 0;
      while (index < d_.attributes.size() && d_.attributes[index].name != parts.first) ++index;
      if (index == d_.attributes.size()) return Wrong(at, "no such attribute");
      OPSERVE_ASSIGN_OR_RETURN(golden->attributes[index],
                               ReadValue(at, d_.attributes[index], parts.second));
      ++place_.part_index;
    }
    return absl::OkStatus();
  }

  absl::Status ReadGolden(const Json& json) {
    GoldenCase golden;
    OPSERVE_RETURN_IF_ERROR(ReadTensors(json, "input", d_.inputs, &golden.inputs));
    OPSERVE_RETURN_IF_ERROR(ReadTensors(json, "output", d_.outputs, &golden.outputs));
    OPSERVE_RETURN_IF_ERROR(ReadGoldenAttributes(json, &golden));
    place_.part = nullptr;
    const auto is_missing = [this](absl::string_view kind, absl::string_view name) {
      return Wrong(At("golden"), absl::StrCat(kind, " ", name, " is missing"));
    };
    for (size_t i = 0; i < d_.attributes.size(); ++i) {
      if (golden.attributes[i].index() != 0 || d_.attributes[i].is_optional) continue;
      return is_missing("attribute", d_.attributes[i].name);
    }
    for (size_t i = 0; i < d_.inputs.size(); ++i) {
      const InputDescriptor& input = d_.inputs[i];
      if (!golden.inputs[i].empty() || input.is_optional || input.is_list) continue;
      return is_missing("input", input.name);
    }
    for (size_t i = 0; i < d_.outputs.size(); ++i) {
      const OutputDescriptor& output = d_.outputs[i];
      // In place of an input that the case leaves out.
      const bool is_left_out = output.input && golden.inputs[*output.input].empty();
      if (!golden.outputs[i].empty() || output.is_masked() || output.is_list || is_left_out)
        continue;
      return is_missing("output", output.name);
    }
    if (json.contains("tolerance")) {
      place_.part = "tolerance";
      place_.part_index = -1;
      const Json& tolerance = json["tolerance"];
      golden.tolerance = tolerance.is_number() ? tolerance.get<double>() : -1;
      // More would let any result of the right sign pass.
      if (!(golden.tolerance >= 0 && golden.tolerance < 1)) {
        return Wrong(At("golden"),
                     absl::StrCat("tolerance: ", tolerance.dump(), " must be from 0 to below 1"));
      }
    }
    place_.part = nullptr;
    // A case that the rules refuse would keep every device from serving, so it is found before a
    // device runs it.
    const std::string contradiction = ContradictionOf(d_, golden);
    if (!contradiction.empty()) return Wrong(At("golden"), contradiction);
    d_.golden.push_back(std::move(golden));
    return absl::OkStatus();
  }

  const Json& json_;
  DescriptionPlace& place_;
  OperatorDescriptor d_;
  std::set<std::string> names_;  // of arguments
  bool has_mask_ = false;
};

}  // namespace

absl::StatusOr<OperatorDescriptor> ReadDescriptor(absl::string_view json, DescriptionPlace* place) {
  DescriptionPlace unused;
  // Without exceptions: the text may be of an operator pack.
  const Json parsed = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return Wrong("operator", "is no JSON object");
  return DescriptorReader(parsed, place != nullptr ? place : &unused).Read();
}

}  // namespace opserve::catalog
