// What people type: attributes, handles, targets and arguments of `opserve`, addresses and flags of
// `opserved`. What is accepted keeps to its rules and survives being written and read again.
//
// Input: a byte that chooses the reader, a byte it may use, the text.
#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/cli/arrays/attribute_text.h"
#include "client/cli/arrays/handle_text.h"
#include "client/cli/arrays/run_arguments.h"
#include "client/cpp/target.h"
#include "ops/catalog/catalog.h"
#include "ops/catalog/descriptor_proto.h"
#include "server/config/config_text.h"
#include "server/config/flags.h"
#include "server/config/listen_address.h"
#include "tests/fuzz/targets/check.h"
#include "tests/fuzz/targets/input.h"

namespace opserve::fuzz {
namespace {

// Attributes of every type, with and without names and bounds.
v1::AttributeDescriptor SomeAttribute(uint8_t choice) {
  v1::AttributeDescriptor attribute;
  attribute.set_name("attribute");
  switch (choice % 4) {
    case 0:
      attribute.set_type(v1::AttributeDescriptor::TYPE_INT64);
      attribute.set_minimum(-3);
      attribute.set_maximum(1000);
      break;
    case 1: {
      attribute.set_type(v1::AttributeDescriptor::TYPE_INT64);
      v1::NamedValue* mean = attribute.add_names();
      mean->set_name("mean");
      mean->set_value(1);
      break;
    }
    case 2:
      attribute.set_type(v1::AttributeDescriptor::TYPE_BOOL);
      break;
    default:
      attribute.set_type(v1::AttributeDescriptor::TYPE_DOUBLE);
  }
  return attribute;
}

std::string Written(const AttributeValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return absl::StrCat(*number);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<double>(&value)) return absl::StrFormat("%.17g", *number);
  return std::get<std::string>(value);
}

void ReadAttribute(uint8_t choice, absl::string_view text) {
  const v1::AttributeDescriptor attribute = SomeAttribute(choice);
  const auto parsed = cli::ParseAttribute(attribute, text);
  if (!parsed.ok()) {
    Check(absl::StrContains(parsed.status().message(), cli::DescribeChoices(attribute)),
          "a refusal lists the choices");
    return;
  }
  if (const auto* number = std::get_if<int64_t>(&parsed->value); number && choice % 4 == 0) {
    Check(*number >= -3 && *number <= 1000, "numbers are within their bounds");
  }
  const auto again = cli::ParseAttribute(attribute, Written(parsed->value));
  const auto* number = std::get_if<double>(&parsed->value);
  Check(again.ok() && (again->value == parsed->value || (number && std::isnan(*number))),
        "a value can be written and read again");
}

void ReadHandle(absl::string_view text) {
  const auto handle = cli::ParseHandle(text);
  if (!handle.ok()) return;
  Check(2 * handle->size() == text.size(), "two digits make a byte");
  Check(absl::EqualsIgnoreCase(cli::FormatHandle(*handle), text), "a handle is what was written");
}

void ReadTarget(absl::string_view text) {
  const auto target = ParseTarget(text);
  if (!target.ok()) {
    Check(!target.status().message().empty(), "a refusal says why");
    return;
  }
  Check(!target->uri.empty(), "gRPC gets a target");
  Check(absl::StrContains(text, ',') <= target->is_balanced, "calls to several are balanced");
}

void ReadListenAddress(absl::string_view text) {
  const auto address = server::ParseListenAddress(text);
  if (!address.ok()) return;
  Check(address->port >= 0 && address->port <= 65535, "a port is one");
  const auto again = server::ParseListenAddress(address->ToString());
  Check(again.ok() && *again == *address, "an address can be written and read again");
}

// Input: NAME=VALUE lines, as flags of the command line.
void ReadFlags(absl::string_view text) {
  std::vector<std::string> flags;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    flags.push_back(absl::StrCat("--", line));
  }
  std::vector<const char*> arguments;
  for (const std::string& flag : flags) arguments.push_back(flag.c_str());
  const auto line = server::CommandLine::Parse(arguments);
  if (!line.ok()) {
    Check(!line.status().message().empty(), "a refusal says why");
    return;
  }
  config::ServerConfig values;
  line->Override(&values);
  config::ServerConfig again = values;
  line->Override(&again);
  Check(again.SerializeAsString() == values.SerializeAsString(),
        "flags override, they do not add up");
  const bool is_valid = server::CheckRules(values).ok();
  server::FillDefaults(&again);
  Check(server::CheckRules(again).ok() == is_valid, "what is left out has a valid default");
}

// Input: the arguments of `opserve run`, one in each line, by their first letter. No files are
// read: what does not name a tensor has no chance.
void ReadRunArguments(uint8_t choice, absl::string_view text) {
  const auto operators = catalog::AllOperators();
  const v1::OperatorDescriptor descriptor = catalog::ToProto(*operators[choice % operators.size()]);
  cli::RunArguments arguments;
  arguments.operator_name = descriptor.name();
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view value = line.substr(std::min<size_t>(1, line.size()));
    if (absl::StartsWith(line, "i") && absl::StrContains(value, "=tensor:")) {
      arguments.inputs.emplace_back(value);
    } else if (absl::StartsWith(line, "a")) {
      arguments.attributes.emplace_back(value);
    } else if (absl::StartsWith(line, "o")) {
      arguments.outputs.emplace_back(value);
    } else if (absl::StartsWith(line, "t")) {
      arguments.output_dtypes.emplace_back(value);
    }
  }
  const auto files = cli::BuildOutputFiles(descriptor, arguments);
  Check(!files.ok() || files->size() == arguments.outputs.size(), "every output has its file");
  const auto invocation = cli::BuildInvocation(descriptor, arguments);
  if (!invocation.ok()) {
    Check(!invocation.status().message().empty(), "a refusal says why");
    return;
  }
  Check(invocation->inputs.size() == arguments.inputs.size() &&
            invocation->attributes.size() == arguments.attributes.size(),
        "nothing that was said is lost");
}

}  // namespace
}  // namespace opserve::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace opserve::fuzz;  // NOLINT: the function stands for a namespace of its own
  Input input(data, size);
  const uint8_t reader = input.Byte();
  const uint8_t choice = input.Byte();
  switch (reader % 6) {
    case 0:
      ReadAttribute(choice, input.Rest());
      break;
    case 1:
      ReadHandle(input.Rest());
      break;
    case 2:
      ReadTarget(input.Rest());
      break;
    case 3:
      ReadListenAddress(input.Rest());
      break;
    case 4:
      ReadFlags(input.Rest());
      break;
    default:
      ReadRunArguments(choice, input.Rest());
  }
  return 0;
}
