#include "server/kserve/request_parameters.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ops/catalog/attributes.h"
#include "proto/status/status_macros.h"
#include "server/kserve/models.h"

namespace opserve::server {
namespace {

using inference::InferParameter;

constexpr absl::string_view kReservedPrefix = "triton_";
constexpr absl::string_view kEmptyFinalResponse = "triton_enable_empty_final_response";

std::optional<int64_t> WholeNumber(double value) {
  // Within 64 bits: doubles next to 2^63 (about 9.223e18) are too coarse to tell on which side they
  // are.
  if (std::trunc(value) != value || value < -9.2e18 || value > 9.2e18) return std::nullopt;
  return static_cast<int64_t>(value);
}

// The parameter as an integer, whichever of its fields has it; none if it is no integer.
std::optional<int64_t> IntegerOf(const InferParameter& parameter) {
  int64_t number = 0;
  switch (parameter.parameter_choice_case()) {
    case InferParameter::kInt64Param:
      return parameter.int64_param();
    case InferParameter::kUint64Param:
      if (parameter.uint64_param() > INT64_MAX) return std::nullopt;
      return static_cast<int64_t>(parameter.uint64_param());
    case InferParameter::kDoubleParam:
      return WholeNumber(parameter.double_param());
    case InferParameter::kStringParam:
      if (absl::SimpleAtoi(parameter.string_param(), &number)) return number;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// A bool, its word, or 0 and 1: some clients can send nothing but integers and texts.
std::optional<bool> BoolOf(const InferParameter& parameter) {
  if (parameter.parameter_choice_case() == InferParameter::kBoolParam) {
    return parameter.bool_param();
  }
  // A parameter of another kind has an empty string here, which is neither.
  if (absl::EqualsIgnoreCase(parameter.string_param(), "true")) return true;
  if (absl::EqualsIgnoreCase(parameter.string_param(), "false")) return false;
  const std::optional<int64_t> number = IntegerOf(parameter);
  if (number == 0) return false;
  if (number == 1) return true;
  return std::nullopt;
}

std::optional<double> DoubleOf(const InferParameter& parameter) {
  if (parameter.parameter_choice_case() == InferParameter::kDoubleParam) {
    return parameter.double_param();
  }
  double number = 0;
  if (parameter.parameter_choice_case() == InferParameter::kStringParam) {
    if (absl::SimpleAtod(parameter.string_param(), &number)) return number;
    return std::nullopt;
  }
  const std::optional<int64_t> integer = IntegerOf(parameter);
  if (!integer) return std::nullopt;
  return static_cast<double>(*integer);
}

bool IsNameOf(const catalog::AttributeDescriptor& attribute, absl::string_view text) {
  for (const catalog::AttributeDescriptor::Name& name : attribute.names) {
    if (name.name == text) return true;
  }
  return false;
}

// "[1, 2]", "1,2" or "1" as a list of integers, bools or doubles; false if it is none.
bool ReadList(absl::string_view text, catalog::AttributeType type, v1::AttributeValue* value) {
  text = absl::StripAsciiWhitespace(text);
  if (absl::ConsumePrefix(&text, "[") && !absl::ConsumeSuffix(&text, "]")) return false;
  // An empty list sets the field, too, since the field says its type.
  if (type == catalog::AttributeType::kInt64s) value->mutable_int64_list();
  if (type == catalog::AttributeType::kBools) value->mutable_bool_list();
  if (type == catalog::AttributeType::kDoubles) value->mutable_double_list();
  if (absl::StripAsciiWhitespace(text).empty()) return true;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    part = absl::StripAsciiWhitespace(part);
    int64_t integer = 0;
    double real = 0;
    bool truth = false;
    if (type == catalog::AttributeType::kInt64s) {
      if (!absl::SimpleAtoi(part, &integer)) return false;
      value->mutable_int64_list()->add_values(integer);
    } else if (type == catalog::AttributeType::kBools) {
      if (!absl::SimpleAtob(part, &truth)) return false;
      value->mutable_bool_list()->add_values(truth);
    } else {
      if (!absl::SimpleAtod(part, &real)) return false;
      value->mutable_double_list()->add_values(real);
    }
  }
  return true;
}

// A number of the kind that it is given as; a text as the number that it shows.
bool ReadScalar(const InferParameter& parameter, v1::AttributeValue* value) {
  if (parameter.parameter_choice_case() == InferParameter::kBoolParam) {
    value->set_bool_value(parameter.bool_param());
    return true;
  }
  // A double stays one even if it is whole: the kind of a scalar is part of it.
  if (parameter.parameter_choice_case() != InferParameter::kDoubleParam) {
    if (const std::optional<int64_t> integer = IntegerOf(parameter)) {
      value->set_int64_value(*integer);
      return true;
    }
  }
  const std::optional<double> real = DoubleOf(parameter);
  if (real) value->set_double_value(*real);
  return real.has_value();
}

// In the attribute's own type; the catalogue refuses values outside its range.
absl::Status ReadAttribute(const catalog::OperatorDescriptor& model,
                           const catalog::AttributeDescriptor& attribute,
                           const InferParameter& parameter, v1::AttributeValue* value) {
  const auto wrong_type = [&](absl::string_view expected) {
    return WrongParameterType(model, attribute.name, expected);
  };
  const bool is_text = parameter.parameter_choice_case() == InferParameter::kStringParam;
  switch (attribute.type) {
    case catalog::AttributeType::kBool: {
      const std::optional<bool> given = BoolOf(parameter);
      if (!given) return wrong_type("bool_param");
      value->set_bool_value(*given);
      return absl::OkStatus();
    }
    case catalog::AttributeType::kDouble: {
      const std::optional<double> given = DoubleOf(parameter);
      if (!given) return wrong_type("double_param");
      value->set_double_value(*given);
      return absl::OkStatus();
    }
    case catalog::AttributeType::kText:
      if (!is_text) return wrong_type("string_param");
      value->set_text_value(parameter.string_param());
      return absl::OkStatus();
    case catalog::AttributeType::kDtype:
      value->set_dtype_value(DtypeOf(parameter.string_param()));
      if (value->dtype_value() == v1::DATA_TYPE_UNSPECIFIED) {
        return wrong_type("string_param with a datatype");
      }
      return absl::OkStatus();
    case catalog::AttributeType::kScalar:
      return ReadScalar(parameter, value) ? absl::OkStatus() : wrong_type("a number");
    case catalog::AttributeType::kInt64s:
    case catalog::AttributeType::kBools:
    case catalog::AttributeType::kDoubles:
      // A single integer stands for a list of one.
      if (const std::optional<int64_t> one = is_text ? std::nullopt : IntegerOf(parameter)) {
        return ReadList(absl::StrCat(*one), attribute.type, value)
                   ? absl::OkStatus()
                   : wrong_type("string_param with a list");
      }
      return is_text && ReadList(parameter.string_param(), attribute.type, value)
                 ? absl::OkStatus()
                 : wrong_type("string_param with a list, \"[1, 2]\"");
    case catalog::AttributeType::kInt64:
      break;
  }
  // Attributes without names have no match here.
  if (IsNameOf(attribute, parameter.string_param())) {
    value->set_name(parameter.string_param());
    return absl::OkStatus();
  }
  const std::optional<int64_t> given = IntegerOf(parameter);
  if (!given) {
    return wrong_type(attribute.names.empty()
                          ? "int64_param"
                          : absl::StrCat("int64_param, or string_param with one of ",
                                         catalog::AttributeNamesText(attribute)));
  }
  value->set_int64_value(*given);
  return absl::OkStatus();
}

bool HasAttribute(const catalog::OperatorDescriptor& model, absl::string_view name) {
  return std::any_of(
      model.attributes.begin(), model.attributes.end(),
      [name](const catalog::AttributeDescriptor& attribute) { return attribute.name == name; });
}

absl::Status UnknownParameter(const catalog::OperatorDescriptor& model, absl::string_view name) {
  const std::string known = absl::StrJoin(
      model.attributes, ", ", [](std::string* out, const catalog::AttributeDescriptor& attribute) {
        absl::StrAppend(out, "'", attribute.name, "'");
      });
  return InvalidInference(model, name,
                          absl::StrCat("unknown parameter '", name, "' for model '", model.name,
                                       "'; its attributes are ", known));
}

// 1 is the highest; a priority that is not among ours counts as not said.
absl::Status ReadPriority(const catalog::OperatorDescriptor& model, const InferParameter& parameter,
                          GivenRequest* request) {
  const bool is_signed = parameter.parameter_choice_case() == InferParameter::kInt64Param;
  if (!is_signed && parameter.parameter_choice_case() != InferParameter::kUint64Param) {
    return WrongParameterType(model, "priority", "uint64_param or int64_param");
  }
  if (is_signed && parameter.int64_param() < 0) {
    return InvalidInference(model, "priority",
                            absl::StrCat("invalid value for 'priority' parameter: ",
                                         parameter.int64_param(), ", must not be negative"));
  }
  const uint64_t level =
      is_signed ? static_cast<uint64_t>(parameter.int64_param()) : parameter.uint64_param();
  if (level == 1) request->priority = Priority::kHigh;
  if (level == 3) request->priority = Priority::kLow;
  return absl::OkStatus();
}

absl::Status ReadTimeout(const catalog::OperatorDescriptor& model, const InferParameter& parameter,
                         absl::Duration* timeout) {
  if (parameter.parameter_choice_case() != InferParameter::kInt64Param) {
    return WrongParameterType(model, "timeout", "int64_param");
  }
  if (parameter.int64_param() < 0) {
    return InvalidInference(model, "timeout",
                            absl::StrCat("invalid value for 'timeout' parameter: ",
                                         parameter.int64_param(), ", must not be negative"));
  }
  if (parameter.int64_param() > 0) *timeout = absl::Microseconds(parameter.int64_param());
  return absl::OkStatus();
}

// Of sequences, which operators do not have: the values of these parameters change nothing.
absl::Status CheckSequenceParameter(const catalog::OperatorDescriptor& model,
                                    absl::string_view name, const InferParameter& parameter) {
  const auto type = parameter.parameter_choice_case();
  if (name != "sequence_id") {
    return type == InferParameter::kBoolParam ? absl::OkStatus()
                                              : WrongParameterType(model, name, "bool_param");
  }
  return type == InferParameter::kInt64Param || type == InferParameter::kStringParam
             ? absl::OkStatus()
             : WrongParameterType(model, name, "int64_param or string_param");
}

absl::Status ReadReserved(const catalog::OperatorDescriptor& model, absl::string_view name,
                          const InferParameter& parameter) {
  if (name != kEmptyFinalResponse) {
    return InvalidInference(
        model, name,
        absl::StrCat("parameter '", name, "' begins with '", kReservedPrefix,
                     "', which is reserved; allowed is only ", kEmptyFinalResponse));
  }
  // Every request has exactly one response, which is the final one.
  return parameter.parameter_choice_case() == InferParameter::kBoolParam
             ? absl::OkStatus()
             : WrongParameterType(model, name, "bool_param");
}

}  // namespace

absl::Status WrongParameterType(const catalog::OperatorDescriptor& model, absl::string_view name,
                                absl::string_view expected) {
  return InvalidInference(
      model, name,
      absl::StrCat("invalid value type for '", name, "' parameter, expected ", expected));
}

absl::Status ReadRequestParameters(const catalog::OperatorDescriptor& model,
                                   const InferParameters& parameters, GivenRequest* request,
                                   std::deque<v1::AttributeValue>* values,
                                   absl::Duration* timeout) {
  for (const auto& [name, parameter] : parameters) {
    if (name == "priority") {
      OPSERVE_RETURN_IF_ERROR(ReadPriority(model, parameter, request));
      continue;
    }
    if (name == "timeout") {
      OPSERVE_RETURN_IF_ERROR(ReadTimeout(model, parameter, timeout));
      continue;
    }
    if (name == "sequence_id" || name == "sequence_start" || name == "sequence_end") {
      OPSERVE_RETURN_IF_ERROR(CheckSequenceParameter(model, name, parameter));
      continue;
    }
    if (absl::StartsWith(name, kReservedPrefix)) {
      OPSERVE_RETURN_IF_ERROR(ReadReserved(model, name, parameter));
      continue;
    }
    // The protocol has no field for it.
    if (name == "idempotency_key") {
      if (parameter.parameter_choice_case() != InferParameter::kStringParam) {
        return WrongParameterType(model, name, "string_param");
      }
      request->idempotency_key = parameter.string_param();
      continue;
    }
    // A misspelt attribute would silently take its default.
    if (!HasAttribute(model, name)) return UnknownParameter(model, name);
  }
  // In one order, whatever that of the map: equal requests become equal.
  for (const catalog::AttributeDescriptor& attribute : model.attributes) {
    const auto given = parameters.find(std::string(attribute.name));
    if (given == parameters.end()) continue;
    v1::AttributeValue& value = values->emplace_back();
    OPSERVE_RETURN_IF_ERROR(ReadAttribute(model, attribute, given->second, &value));
    request->program.invocations.front().attributes.push_back({attribute.name, &value});
  }
  return absl::OkStatus();
}

}  // namespace opserve::server
