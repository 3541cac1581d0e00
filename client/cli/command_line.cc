#include "client/cli/command_line.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cli/closest_name.h"
#include "client/cli/command_ops.h"
#include "client/cli/command_run.h"
#include "client/cli/command_status.h"
#include "client/cli/session.h"

namespace opserve::cli {
namespace {

constexpr char kDescription[] =
    "Runs gradient operators on the Ascend NPUs of an opserve daemon.\n";

constexpr char kFooter[] = R"(Examples:
  opserve status
  opserve ops
  opserve ops KlDivBackward
  opserve run L1LossBackward --input grad_output=g.npy --input self=x.npy \
      --input target=t.npy --attr reduction=mean --output out.npy

Exit codes: 0 success, 1 the daemon or the operator refused or failed,
2 the command line or a file cannot be used, 3 the daemon cannot be reached.
"opserve help COMMAND" tells more about a command.)";

// Readers of flags, as CLI11 wants them: nothing if the text is understood, else what is wrong.

std::string ReadTimeout(const std::string& text, absl::Duration* timeout) {
  if (absl::ParseDuration(text, timeout) && *timeout > absl::ZeroDuration()) return "";
  return absl::StrCat("\"", text, "\" is not a time such as 30s, 500ms or 2m");
}

std::string ReadFormat(const std::string& text, OutputFormat* format) {
  if (text != "text" && text != "json") return absl::StrCat("\"", text, "\" is not text or json");
  *format = text == "json" ? OutputFormat::kJson : OutputFormat::kText;
  return "";
}

void AddGlobalFlags(CLI::App& app, Session* session) {
  app.add_option("--target", session->target,
                 absl::StrCat("Where the daemon listens; default ", session->target))
      ->type_name("unix:PATH|HOST:PORT");
  app.add_option("--timeout", "How long a call may take: 500ms, 2m; default 30s")
      ->type_name("TIME")
      ->check([session](const std::string& text) { return ReadTimeout(text, &session->timeout); });
  app.add_option("--format", "Text for people, or one JSON document; default text")
      ->type_name("text|json")
      ->check([session](const std::string& text) { return ReadFormat(text, &session->format); });
  app.set_version_flag("--version", "opserve " OPSERVE_VERSION, "Print the version and exit");
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

// Help on a command, or on the program if null.
std::string HelpOn(const CLI::App& app, const CLI::App* command) {
  if (command == nullptr) {
    // App::help would explain the command that was parsed, which is "help".
    return app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal);
  }
  return absl::StrCat(command->help(app.get_name()),
                      "\nFor --target, --timeout and --format see \"opserve --help\".\n");
}

void AddHelpCommand(CLI::App& app, Command* command) {
  auto name = std::make_shared<std::string>();
  CLI::App* help = app.add_subcommand("help", "Explain a command");
  help->add_option("COMMAND", *name, "The command to explain");
  help->callback([&app, name, command] {
    *command = [&app, name](Session& session) -> std::optional<Failure> {
      const std::vector<std::string> names = CommandNames(app);
      if (!name->empty() && std::find(names.begin(), names.end(), *name) == names.end()) {
        return UsageFailure(absl::NotFoundError(UnknownName("command", *name, names)));
      }
      session.terminal.out << HelpOn(app, name->empty() ? nullptr : app.get_subcommand(*name));
      return std::nullopt;
    };
  });
}

// What CLI11 found wrong, in our words where these are better.
Failure ParseFailure(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const std::vector<std::string> rest = app.remaining();
  std::string message = error.what();
  if (chosen.empty() && !rest.empty() && rest.front().rfind('-', 0) != 0) {
    message = UnknownName("command", rest.front(), CommandNames(app));
  }
  return UsageFailure(absl::InvalidArgumentError(message),
                      absl::StrCat("see \"opserve help", chosen.empty() ? "" : " ",
                                   chosen.empty() ? "" : chosen.front()->get_name(), "\""));
}

bool AsksForJson(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--format=json") return true;
    if (arguments[i] == "--format" && i + 1 < arguments.size() && arguments[i + 1] == "json") {
      return true;
    }
  }
  return false;
}

}  // namespace

ExitCode RunCommandLine(const std::vector<std::string>& arguments, Terminal& terminal) {
  Session session{.terminal = terminal, .target = DefaultTarget()};
  Command command;
  CLI::App app(kDescription, "opserve");
  app.fallthrough();             // global flags may follow the command
  app.require_subcommand(0, 1);  // none is reported in our words
  app.get_formatter()->column_width(34);
  AddGlobalFlags(app, &session);
  AddOpsCommand(app, &command);
  AddRunCommand(app, &command);
  AddStatusCommand(app, &command);
  AddHelpCommand(app, &command);
  app.footer(kFooter);  // after the commands, which would inherit it

  // CLI11 reports by exceptions; they end here.
  std::optional<Failure> failure;
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    if (command != nullptr) {
      failure = command(session);
    } else {
      failure = UsageFailure(absl::InvalidArgumentError("no command"), "see \"opserve help\"");
    }
  } catch (const CLI::CallForVersion& version) {
    terminal.out << version.what() << "\n";
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    terminal.out << HelpOn(app, chosen.empty() ? nullptr : chosen.front());
  } catch (const CLI::ParseError& error) {
    failure = ParseFailure(app, error);
    if (AsksForJson(arguments)) session.format = OutputFormat::kJson;
  }
  if (!failure) return ExitCode::kOk;
  Report(*failure, session.format, terminal);
  return failure->exit_code;
}

}  // namespace opserve::cli
