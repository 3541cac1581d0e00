#include "client/cli/commands/command_line.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/arrays/closest_name.h"
#include "client/cli/commands/admin_connection.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/completion.h"
#include "client/cli/commands/connection_flags.h"
#include "client/cli/text/time_text.h"

namespace opserve::cli {
namespace {

constexpr char kDescription[] =
    "Runs gradient operators on the Ascend NPUs of an opserve daemon.\n";

constexpr char kLineFooter[] = R"(Examples:
  opserve status
  opserve ops
  opserve ops KlDivBackward
  opserve run L1LossBackward --input grad_output=g.npy --input self=x.npy \
      --input target=t.npy --attr reduction=mean --output out.npy
  opserve program run step.textproto --prepare --repeat=100
  opserve tensor upload x.npy --lease=1h
  opserve top
  opserve bench KlDivBackward --concurrency=1,4,16
  opserve admin drain 0
  opserve doctor --acl-library-dir=cann

Exit codes: 0 success, 1 the daemon or the operator refused or failed,
2 the command line or a file cannot be used, 3 the daemon cannot be reached.
"opserve help COMMAND" tells more about a command.

A daemon that is not on this machine:
  opserve status --target=npu7.example:50051 --tls-ca=ca.pem --token-file=token
Any --tls-... implies --tls. Without --tls a token goes to Unix sockets and
loopback addresses only. Calls that a busy or restarting daemon refuses are
repeated a few times, within --timeout.)";

// A reader of flags, as CLI11 wants them: returns "" for a valid text, else the complaint.
std::string ReadFormat(const std::string& text, OutputFormat* format) {
  if (text != "text" && text != "json") return absl::StrCat("\"", text, "\" is not text or json");
  *format = text == "json" ? OutputFormat::kJson : OutputFormat::kText;
  return "";
}

void AddGlobalFlags(CLI::App& app, Session* session) {
  app.add_option("--target", session->target,
                 absl::StrCat("Where the daemon listens, or with dns:///HOST:PORT or commas, where "
                              "several do; default ",
                              session->target))
      ->type_name("unix:PATH|HOST:PORT");
  app.add_option("--timeout", "How long a call may take: 500ms, 2m; default 30s")
      ->type_name("TIME")
      ->check([session](const std::string& text) { return ReadTime(text, &session->timeout); });
  app.add_option("--format", "Text for people, or one JSON document; default text")
      ->type_name("text|json")
      ->check([session](const std::string& text) { return ReadFormat(text, &session->format); });
  AddConnectionFlags(app, session);
  app.set_version_flag("--version", "opserve " OPSERVE_VERSION, "Print the version and exit");
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : VisibleCommands(app)) names.push_back(command->get_name());
  return names;
}

// The last of the commands that were parsed ("renew" of "opserve tensor renew"), or the program.
const CLI::App& ChosenCommand(const CLI::App& app) {
  const CLI::App* chosen = &app;
  while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
  return *chosen;
}

// A command's name with those of its parents: "opserve", "opserve tensor renew".
std::string FullName(const CLI::App& command) {
  if (command.get_parent() == nullptr) return command.get_name();
  return absl::StrCat(FullName(*command.get_parent()), " ", command.get_name());
}

// Help on a command or on the program.
std::string HelpOn(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  // The help of a command does not repeat the program's flags, so it names them.
  // App::help would explain the command that was parsed, which may be "help".
  std::string help =
      command.get_formatter()->make_help(&command, FullName(command), CLI::AppFormatMode::Normal);
  if (parent == nullptr) return help;
  return absl::StrCat(help, "\nFor ", IsAdministrative(command) ? "" : "--target, ",
                      "--timeout, --format, --tls and --token-file see \"opserve --help\".\n");
}

std::optional<Failure> RunHelp(const CLI::App& app, const std::vector<std::string>& names,
                               Session& session) {
  const CLI::App* command = &app;
  for (const std::string& name : names) {
    const std::vector<const CLI::App*> known = VisibleCommands(*command);
    const auto found = std::find_if(known.begin(), known.end(), [&name](const CLI::App* app) {
      return app->check_name(name);  // aliases included
    });
    if (found == known.end()) {
      return UsageFailure(
          absl::NotFoundError(UnknownName("command", name, CommandNames(*command))));
    }
    command = *found;
  }
  session.terminal.out << HelpOn(*command);
  return std::nullopt;
}

// The commands, for users that type "opserve" alone.
std::string CommandList(const CLI::App& app) {
  std::vector<std::vector<std::string>> rows = {{"COMMAND", ""}};
  for (const CLI::App* command : VisibleCommands(app)) {
    rows.push_back({command->get_name(), command->get_description()});
  }
  return absl::StrCat(
      FormatTable(rows),
      "\n\"opserve help COMMAND\" tells more about a command, \"opserve help\" about "
      "flags.\n");
}

void AddHelpCommand(CLI::App& app, Command* command) {
  auto names = std::make_shared<std::vector<std::string>>();
  CLI::App* help = app.add_subcommand("help", "Explain a command");
  help->add_option("COMMAND", *names, "The command to explain");
  help->callback([&app, names, command] {
    *command = [&app, names](Session& session) { return RunHelp(app, *names, session); };
  });
}

// CLI11's complaint, in our words where these are better.
Failure ParseFailure(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& chosen = ChosenCommand(app);
  const std::vector<std::string> commands = CommandNames(chosen);
  const std::vector<std::string> rest = app.remaining(/*recurse=*/true);
  std::string message = error.what();
  // Words that no command is: CLI11 would only call them extra arguments.
  if (!commands.empty() && !rest.empty() && rest.front().rfind('-', 0) != 0) {
    message = UnknownName("command", rest.front(), commands);
  } else if (!commands.empty() && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    message =
        absl::StrCat("\"", FullName(chosen), "\" takes a command: ", absl::StrJoin(commands, ", "));
  }
  const std::string name = FullName(chosen).substr(app.get_name().size());
  return UsageFailure(absl::InvalidArgumentError(message),
                      absl::StrCat("see \"opserve help", name, "\""));
}

// Flags of two words may be written as those of the daemon are: --tls_ca for --tls-ca.
std::vector<std::string> WithDashes(std::vector<std::string> arguments) {
  for (std::string& argument : arguments) {
    if (argument.rfind("--", 0) != 0) continue;
    // Up to "=": values keep their underscores.
    std::replace(argument.begin(), std::find(argument.begin(), argument.end(), '='), '_', '-');
  }
  return arguments;
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
  const DefaultTarget default_target = FindDefaultTarget();
  Session session{.terminal = terminal,
                  .target = default_target.target,
                  .target_source = default_target.source};
  session.connection.token = DefaultToken();
  session.connection.traceparent = DefaultTraceParent;
  Command command;
  CLI::App app(kDescription, "opserve");
  app.fallthrough();             // global flags may follow the command
  app.require_subcommand(0, 1);  // none is reported in our words
  app.get_formatter()->column_width(34);
  AddGlobalFlags(app, &session);
  AddOpsCommand(app, &command);
  AddRunCommand(app, &command);
  AddProgramCommand(app, &command);
  AddStatusCommand(app, &command);
  AddTensorCommand(app, &command);
  AddTopCommand(app, &command);
  AddBenchCommand(app, &command);
  AddAdminCommand(app, &command);
  AddDoctorCommand(app, &command);
  AddCompletionCommands(app, &command);
  AddHelpCommand(app, &command);
  app.footer(kLineFooter);  // after the commands, which would inherit it

  // CLI11 reports by exceptions; they end here.
  std::optional<Failure> failure;
  try {
    // CLI11 takes arguments from the back of the vector.
    std::vector<std::string> reversed = WithDashes(arguments);
    std::reverse(reversed.begin(), reversed.end());
    app.parse(std::move(reversed));
    // A default target and one from the environment are told apart in hints.
    if (app.get_option("--target")->count() > 0) session.target_source = TargetSource::kFlag;
    if (command != nullptr) {
      failure = command(session);
    } else if (arguments.empty()) {
      terminal.err << CommandList(app);
      return ExitCode::kUsage;  // a script has lost its arguments
    } else {
      failure = UsageFailure(absl::InvalidArgumentError("no command"), "see \"opserve help\"");
    }
  } catch (const CLI::CallForVersion& version) {
    terminal.out << version.what() << "\n";
  } catch (const CLI::CallForHelp&) {
    terminal.out << HelpOn(ChosenCommand(app));
  } catch (const CLI::ParseError& error) {
    failure = ParseFailure(app, error);
    // The parser has failed, so --format may not have been read yet.
    if (AsksForJson(arguments)) session.format = OutputFormat::kJson;
  }
  if (!failure) return ExitCode::kOk;
  Report(*failure, session.format, terminal);
  return failure->exit_code;
}

}  // namespace opserve::cli
