#include "client/cli/run_arguments.h"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/array_file.h"
#include "client/cli/attribute_text.h"
#include "client/cli/closest_name.h"
#include "client/cli/handle_text.h"
#include "client/cli/random_tensor.h"
#include "client/cpp/tensor_layout.h"
#include "proto/dtypes/dtype.h"
#include "proto/status/status_macros.h"

namespace opserve::cli {
namespace {

struct NameAndText {
  std::string name;
  std::string text;
};

template <typename Descriptors>
std::vector<std::string> NamesOf(const Descriptors& descriptors) {
  std::vector<std::string> names;
  for (const auto& descriptor : descriptors) names.push_back(descriptor.name());
  return names;
}

// Takes NAME=TEXT arguments apart; every name must be among `names`, none twice.
absl::StatusOr<std::vector<NameAndText>> SplitNamed(absl::string_view kind,
                                                    const std::vector<std::string>& arguments,
                                                    const std::vector<std::string>& names) {
  std::vector<NameAndText> split;
  for (const std::string& argument : arguments) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(argument, absl::MaxSplits('=', 1));
    const auto& [name, text] = parts;
    if (text.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", kind, " \"", argument, "\": expected NAME=VALUE"));
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return absl::InvalidArgumentError(UnknownName(kind, name, names));
    }
    for (const NameAndText& other : split) {
      if (other.name == name) {
        return absl::InvalidArgumentError(absl::StrCat(kind, " \"", name, "\" is given twice"));
      }
    }
    split.push_back({name, text});
  }
  return split;
}

// The same for [NAME=]TEXT of outputs, where the first output is meant if no name is given.
absl::StatusOr<std::vector<NameAndText>> SplitOutputs(const v1::OperatorDescriptor& descriptor,
                                                      absl::string_view kind,
                                                      const std::vector<std::string>& arguments) {
  const std::vector<std::string> names = NamesOf(descriptor.outputs());
  std::vector<std::string> named;
  for (const std::string& argument : arguments) {
    const bool has_name = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return absl::StartsWith(argument, absl::StrCat(name, "="));
    });
    named.push_back(has_name || names.empty() ? argument : absl::StrCat(names[0], "=", argument));
  }
  return SplitNamed(kind, named, names);
}

constexpr uint64_t kMaxRandomBytes = uint64_t{2} << 30;  // what a message can have, about

// A tensor of SHAPE[:DTYPE].
absl::StatusOr<Tensor> MakeRandom(absl::string_view text, std::mt19937_64& random) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  const absl::StatusOr<std::vector<int64_t>> shape = ParseShape(parts[0]);
  if (!shape.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("random:", text, ": ", shape.status().message()));
  }
  const std::optional<DataType> dtype = parts.size() == 1 ? kFloat : ParseDataType(parts[1]);
  if (!dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("random:", text, ": \"", parts[1], "\" is not ", DtypeNames()));
  }
  const std::optional<uint64_t> bytes = ContiguousBytes(*dtype, *shape);
  if (!bytes || *bytes > kMaxRandomBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("random:", text, ": takes more than a message can have"));
  }
  return RandomTensor(*dtype, *shape, random);
}

// Reads, makes or names an input. `random`: its own source of numbers.
absl::StatusOr<NamedInput> ReadInput(const NameAndText& input, std::mt19937_64 random) {
  absl::string_view text = input.text;
  NamedInput named{.name = input.name};
  absl::Status status;
  if (absl::ConsumePrefix(&text, "tensor:")) {
    absl::StatusOr<std::string> handle = ParseHandle(text);
    status = handle.status();
    if (handle.ok()) named.value = ResidentTensor{.handle = *std::move(handle)};
  } else {
    absl::StatusOr<Tensor> tensor = absl::ConsumePrefix(&text, "random:")
                                        ? MakeRandom(text, random)
                                        : ReadArrayArgument(text, input.name);
    status = tensor.status();
    if (tensor.ok()) named.value = *std::move(tensor);
  }
  if (status.ok()) return named;
  return absl::Status(status.code(),
                      absl::StrCat("input \"", input.name, "\": ", status.message()));
}

absl::Status AddInputs(const v1::OperatorDescriptor& descriptor, const RunArguments& arguments,
                       Invocation* invocation) {
  const std::vector<std::string> names = NamesOf(descriptor.inputs());
  OPSERVE_ASSIGN_OR_RETURN(const auto inputs, SplitNamed("input", arguments.inputs, names));
  for (const std::string& name : names) {
    if (std::none_of(inputs.begin(), inputs.end(),
                     [&](const NameAndText& input) { return input.name == name; })) {
      return absl::InvalidArgumentError(absl::StrCat("input \"", name, "\" is missing; ",
                                                     descriptor.name(), " takes ",
                                                     absl::StrJoin(names, ", ")));
    }
  }
  for (const NameAndText& input : inputs) {
    // An input is the same whatever the others are, and differs from them.
    const auto position = std::find(names.begin(), names.end(), input.name) - names.begin();
    std::seed_seq seed = {arguments.seed & UINT32_MAX, arguments.seed >> 32,
                          static_cast<uint64_t>(position)};
    OPSERVE_ASSIGN_OR_RETURN(NamedInput named, ReadInput(input, std::mt19937_64(seed)));
    invocation->inputs.push_back(std::move(named));
  }
  return absl::OkStatus();
}

absl::Status AddAttributes(const v1::OperatorDescriptor& descriptor, const RunArguments& arguments,
                           Invocation* invocation) {
  OPSERVE_ASSIGN_OR_RETURN(std::vector<NamedAttribute> attributes,
                           ParseAttributes(descriptor, arguments.attributes));
  invocation->attributes = std::move(attributes);
  return absl::OkStatus();
}

absl::Status AddOutputDataTypes(const v1::OperatorDescriptor& descriptor,
                                const RunArguments& arguments, Invocation* invocation) {
  OPSERVE_ASSIGN_OR_RETURN(const auto dtypes,
                           SplitOutputs(descriptor, "output-dtype", arguments.output_dtypes));
  for (const auto& [output, text] : dtypes) {
    const std::optional<DataType> dtype = ParseDataType(text);
    if (!dtype) {
      return absl::InvalidArgumentError(
          absl::StrCat("--output-dtype \"", text, "\" is not ", DtypeNames()));
    }
    invocation->output_dtypes.push_back({.output = output, .dtype = *dtype});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<NamedAttribute>> ParseAttributes(
    const v1::OperatorDescriptor& descriptor, const std::vector<std::string>& arguments) {
  OPSERVE_ASSIGN_OR_RETURN(const auto split,
                           SplitNamed("attribute", arguments, NamesOf(descriptor.attributes())));
  std::vector<NamedAttribute> attributes;
  for (const NameAndText& attribute : split) {
    const auto named = std::find_if(
        descriptor.attributes().begin(), descriptor.attributes().end(),
        [&](const v1::AttributeDescriptor& known) { return known.name() == attribute.name; });
    OPSERVE_ASSIGN_OR_RETURN(NamedAttribute parsed, ParseAttribute(*named, attribute.text));
    attributes.push_back(std::move(parsed));
  }
  return attributes;
}

absl::StatusOr<Invocation> BuildInvocation(const v1::OperatorDescriptor& descriptor,
                                           const RunArguments& arguments) {
  Invocation invocation{.operator_name = descriptor.name()};
  for (const auto add : {&AddAttributes, &AddOutputDataTypes, &AddInputs}) {
    OPSERVE_RETURN_IF_ERROR(add(descriptor, arguments, &invocation));
  }
  return invocation;
}

absl::StatusOr<v1::Priority> ParsePriority(const RunArguments& arguments) {
  if (arguments.priority == "low") return v1::PRIORITY_LOW;
  if (arguments.priority == "normal") return v1::PRIORITY_NORMAL;
  if (arguments.priority == "high") return v1::PRIORITY_HIGH;
  return absl::InvalidArgumentError(
      absl::StrCat("--priority \"", arguments.priority, "\": expected low, normal or high"));
}

absl::StatusOr<std::vector<OutputFile>> BuildOutputFiles(const v1::OperatorDescriptor& descriptor,
                                                         const RunArguments& arguments) {
  OPSERVE_ASSIGN_OR_RETURN(const auto outputs,
                           SplitOutputs(descriptor, "output", arguments.outputs));
  std::vector<OutputFile> files;
  for (const auto& [output, path] : outputs) files.push_back({.output = output, .path = path});
  return files;
}

}  // namespace opserve::cli
