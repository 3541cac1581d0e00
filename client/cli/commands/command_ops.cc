#include "client/cli/commands/commands.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/arrays/attribute_text.h"
#include "client/cli/arrays/closest_name.h"
#include "client/cli/commands/daemon_program.h"

namespace opserve::cli {
namespace {

constexpr char kOpsFooter[] = R"(Examples:
  opserve ops                      all operators, one line each
  opserve ops KlDivBackward        inputs, attributes, outputs and formula of one
  opserve ops --format=json        the whole catalogue for a program
  opserve ops --check pack.textproto
                                   try an operator pack on this machine; needs no daemon)";

struct OpsArguments {
  std::vector<std::string> names;
  std::string pack;             // to check; empty: none
  std::string acl_library_dir;  // for it
};

using Names = std::vector<std::string>;
using Operators = std::vector<v1::OperatorDescriptor>;

std::string DataTypeNames(const google::protobuf::RepeatedField<int>& dtypes) {
  return absl::StrJoin(dtypes, ", ", [](std::string* out, int dtype) {
    absl::StrAppend(out, DataTypeName(static_cast<DataType>(dtype)));
  });
}

std::string Availability(const v1::OperatorDescriptor& descriptor) {
  if (!descriptor.available()) return "no";
  return descriptor.forbidden() ? "forbidden" : "yes";
}

void WriteTable(const Operators& operators, Terminal& terminal) {
  // Most daemons have no packs, and their table no column for them.
  const bool has_packs = std::any_of(operators.begin(), operators.end(),
                                     [](const auto& op) { return !op.pack().empty(); });
  std::vector<std::vector<std::string>> rows = {{"OPERATOR", "AVAILABLE"}};
  if (has_packs) rows.front().push_back("PACK");
  rows.front().push_back("SUMMARY");
  for (const v1::OperatorDescriptor& descriptor : operators) {
    std::vector<std::string>& row =
        rows.emplace_back(std::vector<std::string>{descriptor.name(), Availability(descriptor)});
    if (has_packs) row.push_back(descriptor.pack().empty() ? "-" : descriptor.pack());
    row.push_back(descriptor.summary());
  }
  terminal.out << FormatTable(rows) << "\nSee \"opserve ops NAME\" for details.\n";
}

// A named part of an operator: one line of facts, then its documentation.
void WritePart(absl::string_view name, absl::string_view facts, absl::string_view documentation,
               Terminal& terminal) {
  terminal.out << "  " << name << "  " << facts << "\n"
               << Wrap(documentation, terminal.width, /*indent=*/6);
}

void WriteAttribute(const v1::AttributeDescriptor& attribute, Terminal& terminal) {
  std::string facts = DescribeChoices(attribute);
  if (attribute.required()) {
    absl::StrAppend(&facts, "; required");
  } else if (attribute.has_default_value()) {
    absl::StrAppend(&facts, "; default ", DescribeDefault(attribute));
  } else {
    absl::StrAppend(&facts, "; optional");
  }
  WritePart(attribute.name(), facts, attribute.documentation(), terminal);
}

void WriteInput(const v1::InputDescriptor& input, Terminal& terminal) {
  std::string facts = DataTypeNames(input.dtypes());
  if (input.list()) {
    absl::StrAppend(&facts, "; a list: ", input.name(), ".0, ", input.name(), ".1, ...");
  }
  if (input.optional()) absl::StrAppend(&facts, "; optional");
  if (input.in_place()) absl::StrAppend(&facts, "; what becomes of it is an output");
  if (input.contiguous()) absl::StrAppend(&facts, "; a view with strides is copied first");
  WritePart(input.name(), facts, input.documentation(), terminal);
}

void WriteOutput(const v1::OutputDescriptor& output, Terminal& terminal) {
  std::string facts = DataTypeNames(output.dtypes());
  if (output.list()) {
    absl::StrAppend(&facts, "; a list: ", output.name(), ".0, ", output.name(), ".1, ...");
  }
  if (output.masked()) absl::StrAppend(&facts, "; may be left out (--want)");
  if (output.in_place()) absl::StrAppend(&facts, "; begins as the input");
  WritePart(output.name(), facts, output.documentation(), terminal);
}

// A value that may be given, as the example has it.
std::string ExampleValue(const v1::AttributeDescriptor& attribute) {
  switch (attribute.type()) {
    case v1::AttributeDescriptor::TYPE_INT64:
      if (!attribute.names().empty()) return attribute.names(0).name();
      // 0 without a bound.
      return absl::StrCat(attribute.minimum());
    case v1::AttributeDescriptor::TYPE_BOOL:
      return "true";
    case v1::AttributeDescriptor::TYPE_DOUBLE:
    case v1::AttributeDescriptor::TYPE_SCALAR:
      return absl::StrCat(attribute.has_lowest() ? attribute.lowest() : 1);
    case v1::AttributeDescriptor::TYPE_TEXT:
      return attribute.texts().empty() ? "TEXT" : attribute.texts(0);
    case v1::AttributeDescriptor::TYPE_DTYPE:
      return std::string(DataTypeName(attribute.dtypes().empty() ? kFloat : attribute.dtypes(0)));
    case v1::AttributeDescriptor::TYPE_INT64S:
      return absl::StrCat("[", attribute.minimum(), "]");
    case v1::AttributeDescriptor::TYPE_BOOLS:
      return "[true]";
    case v1::AttributeDescriptor::TYPE_DOUBLES:
      return absl::StrCat("[", attribute.has_lowest() ? attribute.lowest() : 1, "]");
    default:
      return "VALUE";
  }
}

// Brackets mean something to shells.
std::string ShellWord(const std::string& text) {
  const bool is_plain = text.find_first_of("[]*? ") == std::string::npos;
  return is_plain ? text : absl::StrCat("'", text, "'");
}

// In lines that a shell takes as one.
std::string ExampleCall(const v1::OperatorDescriptor& descriptor) {
  std::string example = absl::StrCat("opserve run ", descriptor.name());
  for (const v1::InputDescriptor& input : descriptor.inputs()) {
    // The example has only those arguments without which the call is refused.
    if (input.optional()) continue;
    for (int i = 0; i < (input.list() ? 2 : 1); ++i) {
      const std::string name = input.list() ? absl::StrCat(input.name(), ".", i) : input.name();
      absl::StrAppend(&example, " \\\n    --input ", name, "=", name, ".npy");
    }
  }
  for (const v1::AttributeDescriptor& attribute : descriptor.attributes()) {
    if (!attribute.required()) continue;
    absl::StrAppend(&example, " \\\n    --attr ", attribute.name(), "=",
                    ShellWord(ExampleValue(attribute)));
  }
  return absl::StrCat(example, " \\\n    --output out.npy");
}

// In the order in which a user fills in a call: inputs, attributes, outputs, and an example of all.
void WriteDetails(const v1::OperatorDescriptor& descriptor, Terminal& terminal) {
  std::ostream& out = terminal.out;
  out << descriptor.name() << "\n" << Wrap(descriptor.summary(), terminal.width, /*indent=*/2);
  if (!descriptor.pack().empty()) {
    out << Wrap(absl::StrCat("From the operator pack ", descriptor.pack(), "."), terminal.width,
                /*indent=*/2);
  }
  if (!descriptor.available()) {
    out << Wrap(
        "Not available: the daemon's ACL libraries or NPUs lack this operator, its operator pack "
        "was "
        "refused, or no device computes it right; \"opserve status\" tells of the last two.",
        terminal.width, /*indent=*/2);
  }
  if (descriptor.forbidden()) {
    out << Wrap("Forbidden: your tenant may not call this operator.", terminal.width,
                /*indent=*/2);
  }
  if (!descriptor.documentation().empty()) {
    out << "\n" << Wrap(descriptor.documentation(), terminal.width, /*indent=*/2);
  }
  out << "\nInputs\n";
  for (const v1::InputDescriptor& input : descriptor.inputs()) {
    WriteInput(input, terminal);
  }
  if (!descriptor.attributes().empty()) out << "\nAttributes\n";
  for (const v1::AttributeDescriptor& attribute : descriptor.attributes()) {
    WriteAttribute(attribute, terminal);
  }
  out << "\nOutputs\n";
  for (const v1::OutputDescriptor& output : descriptor.outputs()) {
    WriteOutput(output, terminal);
  }
  out << "\nExample\n" << Wrap(ExampleCall(descriptor), terminal.width, /*indent=*/2);
}

// Those of these names, in this order; a failure if one is unknown.
std::optional<Failure> Select(const Names& names, const Operators& operators, Operators* selected) {
  Names known;
  for (const v1::OperatorDescriptor& descriptor : operators) known.push_back(descriptor.name());
  for (const std::string& name : names) {
    const auto position = std::find(known.begin(), known.end(), name);
    if (position == known.end()) {
      return UsageFailure(absl::NotFoundError(UnknownName("operator", name, known)));
    }
    selected->push_back(operators[position - known.begin()]);
  }
  return std::nullopt;
}

std::optional<Failure> RunOps(const Names& names, Session& session) {
  session.connection.retry.waits_for_daemon = false;  // people look at this, no job needs it
  auto connection = Connect(session);
  if (auto* failure = std::get_if<Failure>(&connection)) return *failure;
  Client& client = *std::get<std::unique_ptr<Client>>(connection);
  // All, although some are named: an unknown name gets a suggestion.
  const absl::StatusOr<Operators> operators = client.ListOperators({}, session.timeout);
  if (!operators.ok()) return CallFailure(session, client, operators.status());

  Operators selected;
  if (auto failure = Select(names, *operators, &selected)) return failure;
  const Operators& shown = names.empty() ? *operators : selected;
  if (session.format == OutputFormat::kJson) {
    auto list = nlohmann::ordered_json::array();
    for (const v1::OperatorDescriptor& descriptor : shown) list.push_back(ToJson(descriptor));
    WriteJson(session.terminal.out, {{"operators", list}});
  } else if (names.empty()) {
    WriteTable(shown, session.terminal);
  } else {
    for (size_t i = 0; i < shown.size(); ++i) {
      if (i > 0) session.terminal.out << "\n";
      WriteDetails(shown[i], session.terminal);
    }
  }
  return std::nullopt;
}

// Tries a pack as the daemon would at its start.
std::optional<Failure> CheckPack(const OpsArguments& arguments, Session& session) {
  std::vector<std::string> words = {absl::StrCat("--check_operator_pack=", arguments.pack)};
  if (!arguments.acl_library_dir.empty()) {
    words.push_back(absl::StrCat("--acl_library_dir=", arguments.acl_library_dir));
  }
  const std::variant<int, Failure> end = RunDaemonProgram(words, session.terminal.out);
  if (const auto* failure = std::get_if<Failure>(&end)) return *failure;
  const int status = std::get<int>(end);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
  // A golden case runs the pack's own code, which may crash.
  if (WIFSIGNALED(status)) {
    return Failure{.status = absl::InvalidArgumentError(absl::StrCat(
                       "the pack cannot be served: the last of these steps was ended by signal ",
                       WTERMSIG(status), ", ", strsignal(WTERMSIG(status))))};
  }
  // The daemon's code for settings and files that cannot be used.
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) {
    return Failure{.status = absl::InvalidArgumentError("the pack cannot be served")};
  }
  return Failure{.status = absl::FailedPreconditionError("the pack could not be tried")};
}

}  // namespace

void AddOpsCommand(CLI::App& app, Command* command) {
  auto arguments = std::make_shared<OpsArguments>();
  CLI::App* ops = app.add_subcommand("ops", "List the operators, or describe some");
  CLI::Option* names = ops->add_option("OPERATOR", arguments->names, "Operators to describe");
  CLI::Option* check = ops->add_option("--check", arguments->pack,
                                       "Try this operator pack, a file or a directory, on this "
                                       "machine: text, library and golden cases")
                           ->type_name("FILE")
                           ->excludes(names);
  ops->add_option("--acl-library-dir", arguments->acl_library_dir,
                  "For --check, as opserved's: cann, an installation of CANN, or nothing for the "
                  "host CANN")
      ->type_name("DIR")
      ->needs(check);
  ops->footer(kOpsFooter);
  ops->callback([arguments, command] {
    *command = [arguments](Session& session) {
      return arguments->pack.empty() ? RunOps(arguments->names, session)
                                     : CheckPack(*arguments, session);
    };
  });
}

}  // namespace opserve::cli
