#include "client/cli/commands/completion.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/commands/admin_connection.h"
#include "client/cli/commands/handle_lookup.h"
#include "client/cpp/client.h"

namespace opserve::cli {
namespace {

// A user at a prompt does not want to wait for a daemon that is far or gone.
constexpr absl::Duration kPatience = absl::Milliseconds(300);

// Values of inputs that are no files.
constexpr absl::string_view kTensorPrefix = "tensor:";
constexpr absl::string_view kRandomPrefix = "random:";

constexpr char kCompletionFooter[] =
    R"help(To complete commands, flags, operators, their inputs and attributes, devices and
handles of resident tensors with the Tab key:
  bash  eval "$(opserve completion bash)"          in ~/.bashrc
  zsh   eval "$(opserve completion zsh)"           in ~/.zshrc
  fish  opserve completion fish | source           in ~/.config/fish/config.fish)help";

// Bash ends words at "=" and ":" and replaces only the part after the last of them, so the words
// are read from the line, and the part before is cut off. It completes names of files itself if
// there is nothing else.
constexpr char kBash[] = R"script(_opserve() {
  local line="${COMP_LINE:0:COMP_POINT}" words=() head="" found
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  local current="${words[${#words[@]}-1]}"
  [[ $current == *[=:]* ]] && head="${current%"${current##*[=:]}"}"
  COMPREPLY=()
  while IFS= read -r found; do
    COMPREPLY+=("${found#"$head"}")
    [[ $found == *[=:] ]] && compopt -o nospace 2>/dev/null
  done < <(opserve complete -- "${words[@]:1}" 2>/dev/null)
  if [[ " ${COMPREPLY[*]} " == *" tensor: "* ]]; then
    while IFS= read -r found; do COMPREPLY+=("$found"); done < <(compgen -f -- "${current#"$head"}")
  fi
}
complete -o default -F _opserve opserve
)script";
// Its words end at spaces only.
constexpr char kZsh[] = R"script(autoload -U +X bashcompinit && bashcompinit
_opserve() {
  local IFS=$'\n'
  COMPREPLY=($(opserve complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _opserve opserve
)script";
constexpr char kFish[] =
    R"script(complete -c opserve -a '(opserve complete -- (commandline -opc)[2..-1] (commandline -ct))'
)script";

const CLI::App* FindCommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->check_name(name)) return command;  // aliases included
  }
  return nullptr;
}

// The flag of that name, of the command or of one that it belongs to.
const CLI::Option* FindFlag(const CLI::App& command, const std::string& name) {
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    if (const CLI::Option* flag = app->get_option_no_throw(name)) return flag;
  }
  return nullptr;
}

bool TakesValue(const CLI::Option* flag) {
  return flag != nullptr && flag->get_items_expected_max() > 0;
}

// "text|json" is a choice of words, "unix:PATH|HOST:PORT" is none.
// The type's name is the help's text, and serves as the list of choices.
std::vector<std::string> ChoicesOf(const CLI::Option& flag) {
  const std::vector<std::string> words = absl::StrSplit(flag.get_type_name(), '|');
  const auto is_word = [](const std::string& word) {
    return !word.empty() && std::all_of(word.begin(), word.end(), absl::ascii_islower);
  };
  const bool is_choice = words.size() > 1 && std::all_of(words.begin(), words.end(), is_word);
  return is_choice ? words : std::vector<std::string>();
}

void AddFlags(const CLI::App& command, std::vector<std::string>* candidates) {
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* flag : app->get_options()) {
      for (const std::string& name : flag->get_lnames()) {
        // Administrative commands refuse --target, though the program has it.
        if (name == "target" && IsAdministrative(command)) continue;
        candidates->push_back(absl::StrCat("--", name));
      }
    }
  }
}

void AddCommands(const CLI::App& command, std::vector<std::string>* candidates) {
  for (const CLI::App* sub : VisibleCommands(command)) {
    candidates->push_back(sub->get_name());
    for (const std::string& alias : sub->get_aliases()) candidates->push_back(alias);
  }
}

std::vector<std::string> BeginningWith(absl::string_view prefix,
                                       std::vector<std::string> candidates) {
  std::erase_if(candidates,
                [&](const std::string& text) { return !absl::StartsWith(text, prefix); });
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  return candidates;
}

// A command line up to its last word.
struct Line {
  const CLI::App* command = nullptr;
  const CLI::App* explained = nullptr;   // the command that "help" explains
  const CLI::Option* waiting = nullptr;  // the last word is its value
  std::vector<std::string> operands = {};
};

Line Read(const CLI::App& app, const std::vector<std::string>& words) {
  Line line{.command = &app};
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    // Behind "help" the words name commands to explain instead of running them.
    const CLI::App& parent = line.explained != nullptr ? *line.explained : *line.command;
    if (line.waiting != nullptr) {
      line.waiting = nullptr;
    } else if (absl::StartsWith(words[i], "-")) {
      const CLI::Option* flag = FindFlag(*line.command, words[i]);
      if (TakesValue(flag)) line.waiting = flag;
    } else if (const CLI::App* sub = FindCommand(parent, words[i])) {
      if (line.explained != nullptr) {
        line.explained = sub;
      } else {
        line.command = sub;
        if (sub->get_name() == "help") line.explained = &app;
      }
    } else {
      line.operands.push_back(words[i]);
    }
  }
  return line;
}

// The name of the operand that comes next, such as "HANDLE"; "" if none does.
std::string NextOperand(const Line& line) {
  auto given = static_cast<int>(line.operands.size());
  for (const CLI::Option* operand : line.command->get_options()) {
    // Each operand takes as many words as it allows before the next has its turn.
    if (!operand->get_positional()) continue;
    if (given < operand->get_items_expected_max()) return operand->get_name(/*positional=*/true);
    given -= operand->get_items_expected_max();
  }
  return "";
}

std::vector<std::string> WithPrefix(absl::string_view prefix, std::vector<std::string> texts) {
  for (std::string& text : texts) text = absl::StrCat(prefix, text);
  return texts;
}

// Of the operator that the line names; without any parts if it names none, or one that is unknown.
v1::OperatorDescriptor OperatorOf(const Line& line, const CompletionSource& source) {
  if (line.operands.empty()) return {};
  std::vector<v1::OperatorDescriptor> found = source.operators({line.operands[0]});
  return found.empty() ? v1::OperatorDescriptor() : std::move(found[0]);
}

// Values for an attribute that takes one of a few.
std::vector<std::string> ValuesOf(const v1::AttributeDescriptor& attribute) {
  if (attribute.type() == v1::AttributeDescriptor::TYPE_BOOL) return {"false", "true"};
  std::vector<std::string> values(attribute.texts().begin(), attribute.texts().end());
  for (const auto& named : attribute.names()) values.push_back(named.name());
  return values;
}

// NAME= of each attribute, or the values of the one that `text` names.
std::vector<std::string> AttributeArguments(absl::string_view text, const Line& line,
                                            const CompletionSource& source) {
  const size_t equals = text.find('=');
  std::vector<std::string> arguments;
  const v1::OperatorDescriptor op = OperatorOf(line, source);
  for (const v1::AttributeDescriptor& attribute : op.attributes()) {
    const std::string name = absl::StrCat(attribute.name(), "=");
    if (equals == absl::string_view::npos) {
      arguments.push_back(name);
    } else if (name == text.substr(0, equals + 1)) {
      arguments = WithPrefix(name, ValuesOf(attribute));
    }
  }
  return arguments;
}

// NAME of each output.
std::vector<std::string> OutputNames(const Line& line, const CompletionSource& source) {
  std::vector<std::string> names;
  const v1::OperatorDescriptor op = OperatorOf(line, source);
  for (const v1::OutputDescriptor& output : op.outputs()) {
    names.push_back(absl::StrCat(output.name(), output.list() ? ".0" : ""));
  }
  return names;
}

// NAME= of each input, or the values it may have that are no files.
std::vector<std::string> InputArguments(absl::string_view text, const Line& line,
                                        const CompletionSource& source) {
  const size_t equals = text.find('=');
  if (equals == absl::string_view::npos) {
    std::vector<std::string> names;
    const v1::OperatorDescriptor op = OperatorOf(line, source);
    for (const v1::InputDescriptor& input : op.inputs()) {
      names.push_back(absl::StrCat(input.name(), input.list() ? ".0=" : "="));
    }
    return names;
  }
  const absl::string_view name = text.substr(0, equals + 1);
  absl::string_view value = text.substr(equals + 1);
  if (!absl::ConsumePrefix(&value, kTensorPrefix)) {
    return WithPrefix(name, {std::string(kRandomPrefix), std::string(kTensorPrefix)});
  }
  return WithPrefix(absl::StrCat(name, kTensorPrefix), source.handles(value.size()));
}

std::vector<std::string> OperatorNames(const CompletionSource& source) {
  std::vector<std::string> names;
  for (const v1::OperatorDescriptor& op : source.operators({})) names.push_back(op.name());
  return names;
}

// Possible completions of `text`, the value of a flag.
std::vector<std::string> FlagValues(const CLI::Option& flag, absl::string_view text,
                                    const Line& line, const CompletionSource& source) {
  if (flag.check_lname("input")) return InputArguments(text, line, source);
  if (flag.check_lname("attr")) return AttributeArguments(text, line, source);
  if (flag.check_lname("keep")) return OutputNames(line, source);
  if (flag.check_lname("device")) return source.devices();
  return ChoicesOf(flag);
}

std::vector<std::string> Operands(absl::string_view text, const Line& line,
                                  const CompletionSource& source) {
  const std::string operand = NextOperand(line);
  if (operand == "OPERATOR") return OperatorNames(source);
  if (operand == "HANDLE") return source.handles(text.size());
  if (operand == "DEVICE") return source.devices();
  return {};
}

// Asks the daemon, and takes no answer for an empty one.
CompletionSource AskDaemon(Session& session) {
  // One attempt, without waiting: an answer that comes late is no help at a prompt.
  session.connection.retry = {.max_attempts = 1, .budget = 0};
  const auto connect = [&session]() -> std::unique_ptr<Client> {
    auto connection = Connect(session);
    if (std::holds_alternative<Failure>(connection)) return nullptr;
    return std::get<std::unique_ptr<Client>>(std::move(connection));
  };
  CompletionSource source;
  source.operators =
      [connect](const std::vector<std::string>& names) -> std::vector<v1::OperatorDescriptor> {
    const std::unique_ptr<Client> client = connect();
    if (client == nullptr) return {};
    auto operators = client->ListOperators(names, kPatience);
    return operators.ok() ? *std::move(operators) : std::vector<v1::OperatorDescriptor>();
  };
  source.devices = [connect] {
    std::vector<std::string> devices;
    const std::unique_ptr<Client> client = connect();
    if (client == nullptr) return devices;
    const auto status = client->GetServerStatus(kPatience);
    if (!status.ok()) return devices;
    for (const v1::DeviceStatus& device : status->devices()) {
      devices.push_back(absl::StrCat(device.device()));
    }
    return devices;
  };
  source.handles = [connect](size_t typed) {
    std::vector<std::string> handles;
    const std::unique_ptr<Client> client = connect();
    if (client == nullptr) return handles;
    const auto tensors = client->ListTensors(kPatience);
    if (!tensors.ok()) return handles;
    // As many digits as make the handles differ, or as were typed.
    const size_t digits = std::max(typed, DistinctDigits(*tensors));
    for (const TensorInfo& tensor : *tensors) {
      handles.push_back(FormatHandle(tensor.tensor.handle).substr(0, digits));
    }
    return handles;
  };
  return source;
}

}  // namespace

std::vector<std::string> Complete(const CLI::App& app, const std::vector<std::string>& words,
                                  const CompletionSource& source) {
  if (words.empty()) return {};
  const Line line = Read(app, words);
  const absl::string_view last = words.back();
  std::vector<std::string> candidates;
  if (line.waiting != nullptr) {
    candidates = FlagValues(*line.waiting, last, line, source);
  } else if (const size_t equals = last.find('=');
             absl::StartsWith(last, "-") && equals != absl::string_view::npos) {
    const CLI::Option* flag = FindFlag(*line.command, std::string(last.substr(0, equals)));
    if (!TakesValue(flag)) return {};
    candidates = WithPrefix(last.substr(0, equals + 1),
                            FlagValues(*flag, last.substr(equals + 1), line, source));
  } else if (absl::StartsWith(last, "-")) {
    AddFlags(*line.command, &candidates);
  } else {
    candidates = Operands(last, line, source);
    AddCommands(line.explained != nullptr ? *line.explained : *line.command, &candidates);
  }
  return BeginningWith(last, std::move(candidates));
}

absl::StatusOr<std::string> CompletionScript(const std::string& shell) {
  if (shell == "bash") return std::string(kBash);
  if (shell == "zsh") return std::string(kZsh);
  if (shell == "fish") return std::string(kFish);
  return absl::InvalidArgumentError(absl::StrCat("\"", shell, "\" is not bash, zsh or fish"));
}

void AddCompletionCommands(CLI::App& app, Command* command) {
  auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand("completion", "Make a shell complete commands");
  completion->add_option("SHELL", *shell, "bash, zsh or fish")->required();
  completion->footer(kCompletionFooter);
  completion->callback([shell, command] {
    *command = [shell](Session& session) -> std::optional<Failure> {
      const absl::StatusOr<std::string> script = CompletionScript(*shell);
      if (!script.ok()) return UsageFailure(script.status(), "see \"opserve help completion\"");
      session.terminal.out << *script;
      return std::nullopt;
    };
  });

  // The scripts call a command of its own, which people do not see.
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* complete = app.add_subcommand("complete", "Print completions of the last word");
  complete->group("");  // for scripts
  complete->add_option("WORD", *words, "The words behind \"opserve\"");
  complete->callback([&app, words, command] {
    *command = [&app, words](Session& session) -> std::optional<Failure> {
      for (const std::string& candidate : Complete(app, *words, AskDaemon(session))) {
        session.terminal.out << candidate << "\n";
      }
      return std::nullopt;
    };
  });
}

}  // namespace opserve::cli
