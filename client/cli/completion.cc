#include "client/cli/completion.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/admin_connection.h"
#include "client/cli/visible_commands.h"
#include "client/cpp/client.h"

namespace opserve::cli {
namespace {

// Whoever waits at a prompt does not want to wait for a daemon that is far or gone.
constexpr absl::Duration kPatience = absl::Milliseconds(300);

constexpr char kCompletionFooter[] =
    R"help(To complete commands, flags and operators with the Tab key:
  bash  eval "$(opserve completion bash)"          in ~/.bashrc
  zsh   eval "$(opserve completion zsh)"           in ~/.zshrc
  fish  opserve completion fish | source           in ~/.config/fish/config.fish)help";

constexpr char kBash[] = R"script(_opserve() {
  local IFS=$'\n'
  COMPREPLY=($(opserve complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _opserve opserve
)script";
constexpr char kZsh[] = R"(autoload -U +X bashcompinit && bashcompinit
)";
constexpr char kFish[] =
    R"script(complete -c opserve -a '(opserve complete -- (commandline -opc)[2..-1] (commandline -ct))'
)script";

bool TakesOperator(const CLI::App& command) {
  for (const char* name : {"ops", "run", "bench"}) {
    if (command.get_name() == name) return true;
  }
  return false;
}

const CLI::App* FindCommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == name) return command;
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
        if (name == "target" && IsAdministrative(command)) continue;
        candidates->push_back(absl::StrCat("--", name));
      }
    }
  }
}

void AddCommands(const CLI::App& command, std::vector<std::string>* candidates) {
  for (const CLI::App* sub : VisibleCommands(command)) candidates->push_back(sub->get_name());
}

std::vector<std::string> BeginningWith(absl::string_view prefix,
                                       std::vector<std::string> candidates) {
  std::erase_if(candidates,
                [&](const std::string& text) { return !absl::StartsWith(text, prefix); });
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  return candidates;
}

std::vector<std::string> OperatorsOf(Session& session) {
  session.connection.retry = {.max_attempts = 1, .budget = 0};
  auto connection = Connect(session);
  if (std::holds_alternative<Failure>(connection)) return {};
  const auto operators =
      std::get<std::unique_ptr<Client>>(connection)->ListOperators({}, kPatience);
  std::vector<std::string> names;
  if (!operators.ok()) return names;
  for (const v1::OperatorDescriptor& descriptor : *operators) names.push_back(descriptor.name());
  return names;
}

}  // namespace

std::vector<std::string> Complete(const CLI::App& app, const std::vector<std::string>& words,
                                  const OperatorNames& operators) {
  if (words.empty()) return {};
  const CLI::App* command = &app;
  const CLI::App* explained = nullptr;   // what "help" is asked about
  const CLI::Option* waiting = nullptr;  // the flag whose value is the next word
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (waiting != nullptr) {
      waiting = nullptr;
    } else if (absl::StartsWith(words[i], "-")) {
      const CLI::Option* flag = FindFlag(*command, words[i]);
      if (TakesValue(flag)) waiting = flag;
    } else if (const CLI::App* sub =
                   FindCommand(explained != nullptr ? *explained : *command, words[i])) {
      if (explained != nullptr) {
        explained = sub;
      } else {
        command = sub;
        if (sub->get_name() == "help") explained = &app;
      }
    }
  }
  std::vector<std::string> candidates;
  if (waiting != nullptr) {
    candidates = ChoicesOf(*waiting);
  } else if (absl::StartsWith(words.back(), "-")) {
    AddFlags(*command, &candidates);
  } else {
    AddCommands(explained != nullptr ? *explained : *command, &candidates);
    if (TakesOperator(*command)) candidates = operators();
  }
  return BeginningWith(words.back(), std::move(candidates));
}

absl::StatusOr<std::string> CompletionScript(const std::string& shell) {
  if (shell == "bash") return std::string(kBash);
  if (shell == "zsh") return absl::StrCat(kZsh, kBash);
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

  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* complete = app.add_subcommand("complete", "Print what the last word may be");
  complete->group("");  // for scripts
  complete->add_option("WORD", *words, "What is written behind \"opserve\"");
  complete->callback([&app, words, command] {
    *command = [&app, words](Session& session) -> std::optional<Failure> {
      for (const std::string& candidate :
           Complete(app, *words, [&session] { return OperatorsOf(session); })) {
        session.terminal.out << candidate << "\n";
      }
      return std::nullopt;
    };
  });
}

}  // namespace opserve::cli
