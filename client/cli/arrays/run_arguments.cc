#include "client/cli/arrays/run_arguments.h"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/arrays/array_file.h"
#include "client/cli/arrays/attribute_text.h"
#include "client/cli/arrays/closest_name.h"
#include "client/cli/arrays/handle_text.h"
#include "client/cli/arrays/random_tensor.h"
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

template <typename Descriptors>
auto FindNamed(const Descriptors& descriptors, absl::string_view name) {
  return std::find_if(descriptors.begin(), descriptors.end(),
                      [&](const auto& descriptor) { return descriptor.name() == name; });
}

// A tensor of a list: "tensors.2".
struct ListPosition {
  std::string list;
  size_t index;
};

// Nothing: `name` does not have this form, or is not of a list.
template <typename Descriptors>
std::optional<ListPosition> FindInList(const Descriptors& lists, absl::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == absl::string_view::npos) return std::nullopt;
  const absl::string_view digits = name.substr(dot + 1);
  const auto list = FindNamed(lists, name.substr(0, dot));
  uint32_t index = 0;
  // "tensors.01" is another text for the same tensor; it is refused, so that a tensor given twice
  // is found.
  if (list == lists.end() || !list->list() || !absl::SimpleAtoi(digits, &index) ||
      absl::StrCat(index) != digits) {
    return std::nullopt;
  }
  return ListPosition{.list = list->name(), .index = index};
}

// Names of inputs or outputs, and of those tensors of lists that the NAME=TEXT arguments name.
template <typename Descriptors>
std::vector<std::string> TensorNames(const Descriptors& descriptors,
                                     const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  for (const auto& descriptor : descriptors) {
    // Of a list, the first tensor stands for all in the list of known names. Others are added below
    // as they are named.
    names.push_back(descriptor.list() ? absl::StrCat(descriptor.name(), ".0") : descriptor.name());
  }
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    const bool is_new = std::find(names.begin(), names.end(), name) == names.end();
    if (is_new && FindInList(descriptors, name)) names.push_back(name);
  }
  return names;
}

// The same for [NAME=]TEXT of outputs, where the first one of `names` is meant if none is given.
absl::StatusOr<std::vector<NameAndText>> SplitOutputs(absl::string_view kind,
                                                      const std::vector<std::string>& arguments,
                                                      const std::vector<std::string>& names) {
  std::vector<std::string> named;
  for (const std::string& argument : arguments) {
    // By the known names, not by "=": a file's name may have one.
    const bool has_name = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return absl::StartsWith(argument, absl::StrCat(name, "="));
    });
    // Without outputs there is no first one; SplitNamed tells that the name is unknown.
    named.push_back(has_name || names.empty() ? argument : absl::StrCat(names[0], "=", argument));
  }
  return SplitNamed(kind, named, names);
}

constexpr uint64_t kMaxRandomBytes = uint64_t{2} << 30;  // about a message's limit

// A tensor of [ints(LOW,HIGH):]SHAPE[:DTYPE].
absl::StatusOr<Tensor> MakeRandom(absl::string_view text, std::mt19937_64& random) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("random:", text, ": ", why));
  };
  absl::string_view rest = text;
  std::optional<IntegerRange> range;
  if (absl::ConsumePrefix(&rest, "ints")) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const absl::StatusOr<IntegerRange> parsed = ParseIntegerRange(rest.substr(0, end));
    if (!parsed.ok()) return refuse(parsed.status().message());
    range = *parsed;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(rest, absl::MaxSplits(':', 1));
  const absl::StatusOr<std::vector<int64_t>> shape = ParseShape(parts[0]);
  if (!shape.ok()) return refuse(shape.status().message());
  const DataType usual = range ? kInt64 : kFloat;
  const std::optional<DataType> dtype = parts.size() == 1 ? usual : ParseDataType(parts[1]);
  if (!dtype) return refuse(absl::StrCat("\"", parts[1], "\" is not ", DtypeNames()));
  const std::optional<uint64_t> bytes = ContiguousBytes(*dtype, *shape);
  // Before memory is taken: the shape is a few digits on the command line.
  if (!bytes || *bytes > kMaxRandomBytes) return refuse("takes more than a message can have");
  if (!range) return RandomTensor(*dtype, *shape, random);
  if (!Holds(*dtype, *range)) {
    return refuse(absl::StrCat(DataTypeName(*dtype), " does not hold all of these integers"));
  }
  return RandomIntegers(*dtype, *shape, *range, random);
}

// "grad_output, self, [bias], tensors.0, tensors.1, ..."
std::string DescribeInputs(const v1::OperatorDescriptor& descriptor) {
  return absl::StrJoin(
      descriptor.inputs(), ", ", [](std::string* out, const v1::InputDescriptor& input) {
        const std::string tensors =
            input.list() ? absl::StrCat(input.name(), ".0, ", input.name(), ".1, ...")
                         : input.name();
        absl::StrAppend(out, input.optional() ? absl::StrCat("[", tensors, "]") : tensors);
      });
}

// Also keeps AddToList from resizing to the largest index that is written: with no gaps, a list is
// as long as its arguments.
absl::Status CheckNoneIsMissing(const v1::OperatorDescriptor& descriptor,
                                const std::vector<NameAndText>& inputs) {
  for (const v1::InputDescriptor& input : descriptor.inputs()) {
    size_t count = 0;
    // One behind the last position that is named.
    size_t end = 0;  // of the positions in the list
    for (const NameAndText& given : inputs) {
      const auto position = FindInList(descriptor.inputs(), given.name);
      if (position && position->list == input.name()) end = std::max(end, position->index + 1);
      const bool is_of_it = position ? position->list == input.name() : given.name == input.name();
      count += is_of_it ? 1 : 0;
    }
    if (count == 0 && !input.optional()) {
      return absl::InvalidArgumentError(absl::StrCat("input \"", input.name(), "\" is missing; ",
                                                     descriptor.name(), " takes ",
                                                     DescribeInputs(descriptor)));
    }
    if (input.list() && count < end) {
      return absl::InvalidArgumentError(absl::StrCat("input \"", input.name(), "\" has a tensor ",
                                                     end - 1, ", but not all before it"));
    }
  }
  return absl::OkStatus();
}

// The list of that name among the inputs, made if there is none yet.
std::vector<ListedTensor>& ListNamed(const std::string& name, Invocation* invocation) {
  auto& inputs = invocation->inputs;
  auto named = std::find_if(inputs.begin(), inputs.end(),
                            [&](const NamedInput& input) { return input.name == name; });
  if (named == inputs.end()) {
    named = inputs.insert(inputs.end(), {.name = name, .value = std::vector<ListedTensor>()});
  }
  return std::get<std::vector<ListedTensor>>(named->value);
}

void AddToList(const ListPosition& position, const NamedInput& input, Invocation* invocation) {
  std::vector<ListedTensor>& list = ListNamed(position.list, invocation);
  list.resize(std::max(list.size(), position.index + 1));
  if (const auto* tensor = std::get_if<Tensor>(&input.value)) {
    list[position.index] = *tensor;
  } else {
    list[position.index] = std::get<ResidentTensor>(input.value);
  }
}

absl::Status AddInputs(const v1::OperatorDescriptor& descriptor, const RunArguments& arguments,
                       Invocation* invocation) {
  OPSERVE_ASSIGN_OR_RETURN(
      const auto inputs,
      SplitNamed("input", arguments.inputs, TensorNames(descriptor.inputs(), arguments.inputs)));
  OPSERVE_RETURN_IF_ERROR(CheckNoneIsMissing(descriptor, inputs));
  const auto num_from_stream =
      std::count_if(inputs.begin(), inputs.end(),
                    [](const NameAndText& input) { return IsStandardInput(input.text); });
  // Standard input can be read once.
  if (num_from_stream > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(num_from_stream, " inputs are \"-\"; standard input has one array"));
  }
  for (const NameAndText& input : inputs) {
    const std::optional<ListPosition> place = FindInList(descriptor.inputs(), input.name);
    // The input's number, so that its random numbers do not depend on the other arguments.
    const auto number = FindNamed(descriptor.inputs(), place ? place->list : input.name) -
                        descriptor.inputs().begin();
    OPSERVE_ASSIGN_OR_RETURN(
        NamedInput named,
        ReadInput(input.name, input.text,
                  RandomOf(arguments.seed, number,
                           place ? std::optional<uint64_t>(place->index) : std::nullopt),
                  arguments.standard_input));
    if (place) {
      AddToList(*place, named, invocation);
    } else {
      invocation->inputs.push_back(std::move(named));
    }
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

std::vector<std::string> MaskedOutputs(const v1::OperatorDescriptor& descriptor) {
  std::vector<std::string> names;
  for (const v1::OutputDescriptor& output : descriptor.outputs()) {
    if (output.masked()) names.push_back(output.name());
  }
  return names;
}

bool IsAmong(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

absl::Status AddOutputs(const v1::OperatorDescriptor& descriptor, const RunArguments& arguments,
                        Invocation* invocation) {
  OPSERVE_ASSIGN_OR_RETURN(const auto dtypes, SplitOutputs("output-dtype", arguments.output_dtypes,
                                                           NamesOf(descriptor.outputs())));
  const std::vector<std::string> masked = MaskedOutputs(descriptor);
  bool is_masked_named = false;
  for (const auto& [output, text] : dtypes) {
    const std::optional<DataType> dtype = ParseDataType(text);
    if (!dtype) {
      return absl::InvalidArgumentError(
          absl::StrCat("--output-dtype \"", text, "\" is not ", DtypeNames()));
    }
    invocation->output_dtypes.push_back({.output = output, .dtype = *dtype});
    is_masked_named |= IsAmong(output, masked);
  }
  // The command line names the outputs that are wanted; the protocol has those that are masked.
  for (const std::string& name : arguments.wanted_outputs) {
    if (IsAmong(name, masked)) continue;
    return absl::InvalidArgumentError(
        masked.empty() ? absl::StrCat("--want \"", name, "\": ", descriptor.name(),
                                      " always computes all of its outputs")
                       : absl::StrCat("--want \"", name, "\" is not ", absl::StrJoin(masked, ", "),
                                      "; the other outputs are always computed"));
  }
  invocation->masked_outputs = arguments.wanted_outputs;
  // A dtype alone leaves none out.
  if (is_masked_named && invocation->masked_outputs.empty()) invocation->masked_outputs = masked;
  return absl::OkStatus();
}

}  // namespace

std::mt19937_64 RandomOf(uint64_t seed, uint64_t input, std::optional<uint64_t> index) {
  // seed_seq takes 32 bits of each number.
  std::vector<uint64_t> parts = {seed & UINT32_MAX, seed >> 32, input};
  if (index) parts.push_back(*index);
  std::seed_seq sequence(parts.begin(), parts.end());
  return std::mt19937_64(sequence);
}

absl::StatusOr<NamedInput> ReadInput(const std::string& name, absl::string_view text,
                                     std::mt19937_64 random, std::istream* standard_input) {
  NamedInput named{.name = name};
  absl::Status status;
  if (absl::ConsumePrefix(&text, "tensor:")) {
    absl::StatusOr<std::string> handle = ParseHandle(text);
    status = handle.status();
    if (handle.ok()) named.value = ResidentTensor{.handle = *std::move(handle)};
  } else {
    absl::StatusOr<Tensor> tensor = absl::ConsumePrefix(&text, "random:")
                                        ? MakeRandom(text, random)
                                        : ReadArrayArgument(text, name, standard_input);
    status = tensor.status();
    if (tensor.ok()) named.value = *std::move(tensor);
  }
  if (status.ok()) return named;
  return absl::Status(status.code(), absl::StrCat("input \"", name, "\": ", status.message()));
}

absl::StatusOr<std::vector<NamedAttribute>> ParseAttributes(
    const v1::OperatorDescriptor& descriptor, const std::vector<std::string>& arguments) {
  OPSERVE_ASSIGN_OR_RETURN(const auto split,
                           SplitNamed("attribute", arguments, NamesOf(descriptor.attributes())));
  std::vector<NamedAttribute> attributes;
  for (const NameAndText& attribute : split) {
    const auto named = FindNamed(descriptor.attributes(), attribute.name);
    OPSERVE_ASSIGN_OR_RETURN(NamedAttribute parsed, ParseAttribute(*named, attribute.text));
    attributes.push_back(std::move(parsed));
  }
  for (const v1::AttributeDescriptor& attribute : descriptor.attributes()) {
    const bool is_given =
        std::any_of(attributes.begin(), attributes.end(),
                    [&](const NamedAttribute& given) { return given.name == attribute.name(); });
    if (!attribute.required() || is_given) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "attribute \"", attribute.name(), "\" is missing; it is ", DescribeChoices(attribute)));
  }
  return attributes;
}

absl::StatusOr<Invocation> BuildInvocation(const v1::OperatorDescriptor& descriptor,
                                           const RunArguments& arguments) {
  Invocation invocation{.operator_name = descriptor.name()};
  // The inputs last: they are read from files, and the other mistakes are found sooner.
  for (const auto add : {&AddAttributes, &AddOutputs, &AddInputs}) {
    OPSERVE_RETURN_IF_ERROR(add(descriptor, arguments, &invocation));
  }
  return invocation;
}

bool IsComputed(const v1::OperatorDescriptor& descriptor, const Invocation& invocation,
                const v1::OutputDescriptor& output) {
  if (!output.masked()) return true;
  const auto is_named = [&](const v1::OutputDescriptor& masked) {
    return IsAmong(masked.name(), invocation.masked_outputs) ||
           std::any_of(invocation.output_dtypes.begin(), invocation.output_dtypes.end(),
                       [&](const OutputDataType& named) { return named.output == masked.name(); });
  };
  const bool none_is_named =
      std::none_of(descriptor.outputs().begin(), descriptor.outputs().end(),
                   [&](const auto& other) { return other.masked() && is_named(other); });
  return none_is_named || is_named(output);
}

std::vector<OutputOf> ResultNames(const v1::OperatorDescriptor& descriptor,
                                  const Invocation& invocation,
                                  const std::vector<OutputFile>& files) {
  std::vector<OutputOf> names;
  for (const v1::OutputDescriptor& output : descriptor.outputs()) {
    if (!IsComputed(descriptor, invocation, output)) continue;
    if (!output.list()) {
      names.push_back({.output = output.name()});
      continue;
    }
    const size_t count = names.size();
    for (const OutputFile& file : files) {
      const auto place = FindInList(descriptor.outputs(), file.output);
      if (place && place->list == output.name()) names.push_back({.output = file.output});
    }
    // A list without a named tensor: all results come as the daemon returns them.
    if (names.size() == count) return {};
  }
  return names;
}

absl::StatusOr<v1::Priority> ParsePriority(const RunArguments& arguments) {
  if (arguments.priority == "low") return v1::PRIORITY_LOW;
  if (arguments.priority == "normal") return v1::PRIORITY_NORMAL;
  if (arguments.priority == "high") return v1::PRIORITY_HIGH;
  return absl::InvalidArgumentError(
      absl::StrCat("--priority \"", arguments.priority, "\": expected low, normal or high"));
}

absl::StatusOr<std::vector<KeptOutput>> BuildKeptOutputs(const v1::OperatorDescriptor& descriptor,
                                                         const RunArguments& arguments) {
  // A lease without a tensor that it is for would go unnoticed.
  if (arguments.kept_outputs.empty() && arguments.lease != absl::ZeroDuration()) {
    return absl::InvalidArgumentError("--lease is that of outputs that stay; name one with --keep");
  }
  if (!arguments.kept_outputs.empty() && arguments.should_verify) {
    return absl::InvalidArgumentError(
        "--verify compares results that are sent; --keep leaves them with the daemon");
  }
  const std::vector<std::string> names = TensorNames(descriptor.outputs(), arguments.kept_outputs);
  std::vector<KeptOutput> kept;
  for (const std::string& name : arguments.kept_outputs) {
    if (!IsAmong(name, names)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--keep: ", UnknownName("output", name, names)));
    }
    for (const KeptOutput& other : kept) {
      if (other.output.output != name) continue;
      return absl::InvalidArgumentError(absl::StrCat("--keep \"", name, "\" is given twice"));
    }
    kept.push_back({.output = {.output = name}, .lease = arguments.lease});
  }
  return kept;
}

absl::StatusOr<std::vector<OutputFile>> BuildOutputFiles(const v1::OperatorDescriptor& descriptor,
                                                         const RunArguments& arguments) {
  OPSERVE_ASSIGN_OR_RETURN(const auto outputs,
                           SplitOutputs("output", arguments.outputs,
                                        TensorNames(descriptor.outputs(), arguments.outputs)));
  std::vector<OutputFile> files;
  int num_to_stream = 0;
  for (const auto& [output, path] : outputs) {
    OPSERVE_RETURN_IF_ERROR(CheckOutputName(path));
    num_to_stream += path == kStandardOutput ? 1 : 0;
    files.push_back({.output = output, .path = path});
  }
  if (num_to_stream > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(num_to_stream, " outputs are \"-\"; standard output takes one array"));
  }
  return files;
}

}  // namespace opserve::cli
